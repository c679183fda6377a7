// The pieces that SVG plots are made of.
#pragma once

#include <cstddef>
#include <string>

namespace winnow {

inline constexpr size_t kNumPlotColors = 4;

// The opening tag, the background, and the style of what follows, light or dark as the reader
// prefers: classes grid and axis of lines, title and small of texts, c0 to c3 for the colours of
// curves. Sizes in pixels.
std::string plot_begin(double width, double height);
std::string plot_line(double x1, double y1, double x2, double y2, const char* kind);
// `attributes` as they stand in the element; `text` from anywhere.
std::string plot_text(double x, double y, const char* attributes, const std::string& text);

}  // namespace winnow
