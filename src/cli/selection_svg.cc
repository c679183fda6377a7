#include "cli/selection_svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "cli/formatted.h"
#include "cli/markup.h"

namespace winnow {
namespace {

constexpr int kShades = 10;  // of what was kept; 0 is nothing
constexpr double kMargin = 24;
constexpr double kTop = 72;
constexpr double kLabel = 18;  // above each picture

constexpr const char* kMapStyle =
    "<style>\n"
    "text{font:12px system-ui,sans-serif;fill:#222}.title{font-size:15px;font-weight:600}\n"
    ".page{fill:#fff}.left{fill:#e6ebf2}.dense{fill:#b3a583}.kept{fill:#0b4f94}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#14171c}.left{fill:#2a323d}\n"
    ".dense{fill:#7d7153}.kept{fill:#7cc4ff}}\n"
    "</style>\n";

// What a cell is drawn as: dense, or one of the shades; nothing if it is not seen.
constexpr int kNothing = -1;
constexpr int kDense = kShades + 1;

int look_of(const SelectionMap::Cell& cell) {
  switch (cell.kind) {
    case SelectionMap::Kind::kUnseen:
      return kNothing;
    case SelectionMap::Kind::kDense:
      return kDense;
    case SelectionMap::Kind::kSparse:
      break;
  }
  // The least that was kept is told from nothing.
  return static_cast<int>(std::ceil(cell.kept * kShades - 1e-6));
}

std::string picture(const SelectionMap& map, const SelectionMap::Head& head, double x, double y,
                    double scale) {
  // Per look, the runs of cells in cell units.
  std::array<std::string, kDense + 1> paths;
  for (int row = 0; row < map.side(); ++row) {
    int begin = 0;
    for (int column = 0; column <= row; ++column) {
      const int look = look_of(map.cell(head, row, column));
      const bool ends = column == row || look_of(map.cell(head, row, column + 1)) != look;
      if (!ends) continue;
      const int length = column + 1 - begin;
      if (look != kNothing) {
        paths[static_cast<size_t>(look)] +=
            formatted("M%d %dh%dv1h-%dz", begin, row, length, length);
      }
      begin = column + 1;
    }
  }
  std::string svg = formatted(
      "<g transform=\"translate(%.2f %.2f) scale(%.4f)\" shape-rendering=\"crispEdges\">\n", x, y,
      scale);
  for (int look = 0; look <= kDense; ++look) {
    const std::string& path = paths[static_cast<size_t>(look)];
    if (path.empty()) continue;
    const std::string kind =
        look == kDense ? "dense\""
        : look == 0    ? "left\""
                       : formatted("kept\" fill-opacity=\"%.2g\"", 0.15 + 0.85 * look / kShades);
    svg += "<path class=\"" + kind + " d=\"" + path + "\"/>\n";
  }
  return svg + "</g>\n";
}

std::string text_at(double x, double y, const char* kind, const std::string& text) {
  return formatted("<text class=\"%s\" x=\"%.2f\" y=\"%.2f\">", kind, x, y) + markup_text(text) +
         "</text>\n";
}

std::string legend(const SelectionMap& map) {
  const std::string text = formatted(
      "rows: queries from top to bottom, columns: keys; a cell is %lld x %lld tokens",
      static_cast<long long>(map.cell_tokens()), static_cast<long long>(map.cell_tokens()));
  std::string svg = text_at(kMargin, 44, "", text);
  const std::pair<const char*, const char*> keys[] = {
      {"kept", "kept"}, {"left", "left out"}, {"dense", "dense"}};
  double x = kMargin;
  for (const auto& [kind, name] : keys) {
    svg +=
        formatted("<rect class=\"%s\" x=\"%.1f\" y=\"52\" width=\"12\" height=\"12\"/>\n", kind, x);
    svg += text_at(x + 17, 62, "", name);
    x += 90;
  }
  return svg;
}

}  // namespace

std::string selection_svg(const SelectionMap& map, const std::string& title) {
  std::set<int> layers;
  std::set<int> columns;
  for (const SelectionMap::Head& head : map.heads()) {
    layers.insert(head.layer_idx);
    columns.insert(head.head);
  }
  const bool single = map.heads().size() == 1;
  // A whole number of points per cell keeps the pictures sharp.
  const double scale = std::max(1.0, std::round((single ? 640.0 : 128.0) / map.side()));
  const double size = scale * map.side();
  const double step_x = std::max(size, 72.0) + 14;
  const double step_y = size + kLabel + 14;
  // Room for the title, whose characters are narrower than this.
  const double title_width = 9.0 * static_cast<double>(title.size());
  const double width =
      2 * kMargin + std::max({480.0, title_width, step_x * static_cast<double>(columns.size())});
  const double height = kTop + kMargin + step_y * static_cast<double>(layers.size());

  std::string svg = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
      "height=\"%g\">\n",
      width, height, width, height);
  svg += kMapStyle;
  svg += "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
  svg += text_at(kMargin, 24, "title", title) + legend(map);
  const auto place = [](const std::set<int>& numbers, int number) {
    return static_cast<double>(std::distance(numbers.begin(), numbers.find(number)));
  };
  for (const SelectionMap::Head& head : map.heads()) {
    const double x = kMargin + step_x * place(columns, head.head);
    const double y = kTop + step_y * place(layers, head.layer_idx);
    svg += text_at(
        x, y + kLabel - 4, "",
        formatted("%d.%d  %.0f %%", head.layer_idx, head.head, 100 * SelectionMap::density(head)));
    svg += picture(map, head, x, y + kLabel, scale);
  }
  return svg + "</svg>\n";
}

}  // namespace winnow
