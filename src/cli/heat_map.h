// Heat maps of shares, as SVG.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace winnow {

struct HeatMap {
  std::string title;
  std::vector<std::string> column_names;
  std::vector<std::string> row_names;
  // [rows][columns], from 0 (bad) to 1 (good); none where nothing was measured.
  std::vector<std::vector<std::optional<double>>> values;
};

// The maps below each other, two side by side. Names must be plain text without markup characters.
std::string heat_maps_svg(std::string_view title, std::span<const HeatMap> maps);

}  // namespace winnow
