// The pictures of a SelectionMap as one HTML page that needs nothing else: the text of queries and
// keys appears under the pointer.
#pragma once

#include <string>
#include <vector>

#include "attention/selection_map.h"

namespace winnow {

// `texts` holds the text of each cell of a side, in any bytes.
std::string selection_html(const SelectionMap& map, const std::string& title,
                           const std::vector<std::string>& texts);

}  // namespace winnow
