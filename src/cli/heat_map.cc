#include "cli/heat_map.h"

#include <algorithm>
#include <cmath>

#include "cli/formatted.h"

namespace winnow {
namespace {

constexpr int kCellWidth = 64, kCellHeight = 22, kLeft = 60, kTop = 44, kTitle = 34, kGap = 24;

struct Size {
  int width = 0;
  int height = 0;
};

Size size_of(const HeatMap& map) {
  return {std::max(200, kLeft + kCellWidth * static_cast<int>(map.column_names.size())) + kGap,
          kTop + kCellHeight * static_cast<int>(map.row_names.size()) + kGap};
}

std::string text_at(int x, int y, const char* anchor, const std::string& text) {
  return formatted("<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">", x, y, anchor) + text +
         "</text>\n";
}

// Red at 0 over yellow to green at 1; grey where there is no value.
std::string colour(std::optional<double> value) {
  if (!value) return "#e4e4e4";
  return formatted("hsl(%d,65%%,62%%)", static_cast<int>(std::lround(120 * *value)));
}

std::string cell(int x, int y, std::optional<double> value) {
  std::string svg = formatted(
      "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"%s\" stroke=\"#fff\"/>\n", x, y,
      kCellWidth, kCellHeight, colour(value).c_str());
  if (value) {
    svg += text_at(x + kCellWidth / 2, y + 15, "middle", formatted("%.0f", 100 * *value));
  }
  return svg;
}

std::string drawing(const HeatMap& map, int left, int top) {
  std::string svg = text_at(left + kLeft, top + 14, "start", map.title);
  for (size_t column = 0; column < map.column_names.size(); ++column) {
    svg += text_at(left + kLeft + kCellWidth * static_cast<int>(column) + kCellWidth / 2,
                   top + kTop - 8, "middle", map.column_names[column]);
  }
  for (size_t row = 0; row < map.row_names.size(); ++row) {
    const int y = top + kTop + kCellHeight * static_cast<int>(row);
    svg += text_at(left + kLeft - 8, y + 15, "end", map.row_names[row]);
    for (size_t column = 0; column < map.column_names.size(); ++column) {
      svg += cell(left + kLeft + kCellWidth * static_cast<int>(column), y, map.values[row][column]);
    }
  }
  return svg;
}

}  // namespace

std::string heat_maps_svg(std::string_view title, std::span<const HeatMap> maps) {
  Size panel;
  for (const HeatMap& map : maps) {
    panel.width = std::max(panel.width, size_of(map).width);
    panel.height = std::max(panel.height, size_of(map).height);
  }
  const int num_rows = static_cast<int>(maps.size() + 1) / 2;
  const int width = std::max(2 * panel.width, 480);
  const int height = kTitle + num_rows * panel.height;
  std::string svg = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
      width, height, width, height);
  svg += text_at(12, 20, "start", std::string(title));
  for (size_t i = 0; i < maps.size(); ++i) {
    svg += drawing(maps[i], static_cast<int>(i % 2) * panel.width,
                   kTitle + static_cast<int>(i / 2) * panel.height);
  }
  return svg + "</svg>\n";
}

}  // namespace winnow
