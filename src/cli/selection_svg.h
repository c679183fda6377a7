// The pictures of a SelectionMap as one SVG: heads side by side, a layer in each line.
#pragma once

#include <string>

#include "attention/selection_map.h"

namespace winnow {

// Requires map.heads() not to be empty. Brings its own background, light or dark as the reader
// prefers.
std::string selection_svg(const SelectionMap& map, const std::string& title);

}  // namespace winnow
