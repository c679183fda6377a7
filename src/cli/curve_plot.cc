#include "cli/curve_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/formatted.h"
#include "cli/markup.h"

namespace winnow {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 480;
constexpr double kLeft = 76;
constexpr double kRight = 28;
constexpr double kTop = 52;
constexpr double kBottom = 58;
constexpr size_t kNumColors = 4;

// Light, then dark. The colours of the curves can be told apart by people who confuse red and
// green.
constexpr const char* kStyle =
    "<style>\n"
    "text{font:13px system-ui,sans-serif;fill:#222}.page{fill:#fff}.grid{stroke:#ddd}\n"
    ".axis{stroke:#555}.c0{color:#0072b2}.c1{color:#d55e00}.c2{color:#007a55}.c3{color:#a2478a}\n"
    "polyline{fill:none;stroke:currentColor;stroke-width:2}circle{fill:currentColor}\n"
    ".small{font-size:11px}.title{font-size:15px;font-weight:600}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#14171c}.grid{stroke:#333a44}\n"
    ".axis{stroke:#aaa}.c0{color:#56b4e9}.c1{color:#f28e4b}.c2{color:#3ecf9b}.c3{color:#e08fc8}}\n"
    "</style>\n";

// Where numbers lie on the picture.
struct Scales {
  double x_end = 1;
  int first_decade = 0;  // y runs from 10^first_decade to 10^last_decade
  int last_decade = 1;

  explicit Scales(const std::vector<Curve>& curves) {
    double x_max = 0;
    double y_min = std::numeric_limits<double>::infinity();
    double y_max = 0;
    for (const Curve& curve : curves) {
      for (const CurvePoint& point : curve.points) {
        x_max = std::max(x_max, point.x);
        if (point.y > 0) y_min = std::min(y_min, point.y);
        y_max = std::max(y_max, point.y);
      }
    }
    x_end = std::max(0.1, std::ceil(x_max * 10 - 1e-9) / 10);
    if (!(y_max > 0)) return;
    first_decade = static_cast<int>(std::floor(std::log10(y_min) + 1e-9));
    last_decade = std::max(first_decade + 1, static_cast<int>(std::ceil(std::log10(y_max) - 1e-9)));
  }

  double x(double value) const { return kLeft + value / x_end * (kWidth - kLeft - kRight); }
  double y(double value) const {
    const double decades = last_decade - first_decade;
    const double lowest = std::pow(10.0, first_decade);
    const double share = (std::log10(std::max(value, lowest)) - first_decade) / decades;
    return kHeight - kBottom - share * (kHeight - kTop - kBottom);
  }
};

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return formatted(R"(<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>)", kind, x1, y1,
                   x2, y2) +
         "\n";
}

std::string text_at(double x, double y, const char* attributes, const std::string& text) {
  return formatted("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes) + markup_text(text) +
         "</text>\n";
}

std::string grid(const Scales& scales) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  const double step = scales.x_end > 0.55 ? 0.1 : 0.05;
  for (int i = 0; i * step <= scales.x_end + 1e-9; ++i) {
    const double x = scales.x(i * step);
    svg += line(x, kTop, x, bottom, "grid");
    svg += text_at(x, bottom + 18, R"(text-anchor="middle")", formatted("%g", i * step));
  }
  const bool few_decades = scales.last_decade - scales.first_decade <= 2;
  for (int decade = scales.first_decade; decade <= scales.last_decade; ++decade) {
    for (int digit = 1; digit < (decade == scales.last_decade ? 2 : 10); ++digit) {
      const double value = digit * std::pow(10.0, decade);
      const bool labelled = digit == 1 || (few_decades && (digit == 2 || digit == 5));
      if (!labelled) continue;
      const double y = scales.y(value);
      svg += line(kLeft, y, kWidth - kRight, y, "grid");
      svg += text_at(kLeft - 8, y + 4, R"(text-anchor="end")", formatted("%g", value));
    }
  }
  svg += line(kLeft, bottom, kWidth - kRight, bottom, "axis");
  return svg + line(kLeft, kTop, kLeft, bottom, "axis");
}

std::string curve_shapes(const Scales& scales, const Curve& curve, size_t idx) {
  std::string svg = formatted("<g class=\"c%zu\">\n<polyline points=\"", idx % kNumColors);
  for (const CurvePoint& point : curve.points) {
    svg += formatted("%.1f,%.1f ", scales.x(point.x), scales.y(point.y));
  }
  svg += "\"/>\n";
  for (const CurvePoint& point : curve.points) {
    const double x = scales.x(point.x);
    const double y = scales.y(point.y);
    svg += formatted("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>\n", x, y);
    // To the right, where a falling curve leaves room; at the picture's edge to the left.
    svg += x < kWidth - kRight - 40
               ? text_at(x + 7, y - 6, R"(class="small")", point.label)
               : text_at(x - 7, y + 14, R"(class="small" text-anchor="end")", point.label);
  }
  const double key_y = kTop + 16 + 20 * static_cast<double>(idx);
  const double key_x = kWidth - kRight - 110;
  svg += formatted("<polyline points=\"%.1f,%.1f %.1f,%.1f\"/>\n", key_x, key_y, key_x + 28, key_y);
  svg += text_at(key_x + 36, key_y + 4, "", curve.name);
  return svg + "</g>\n";
}

}  // namespace

std::string curve_svg(const CurvePlot& plot) {
  const Scales scales(plot.curves);
  std::string svg = formatted(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
      "height=\"%g\">\n",
      kWidth, kHeight, kWidth, kHeight);
  svg += kStyle;
  svg += "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n";
  svg += grid(scales);
  svg += text_at(kWidth / 2, 28, R"(class="title" text-anchor="middle")", plot.title);
  svg +=
      text_at((kLeft + kWidth - kRight) / 2, kHeight - 16, R"(text-anchor="middle")", plot.x_label);
  const double middle = (kTop + kHeight - kBottom) / 2;
  svg +=
      text_at(18, middle,
              formatted("text-anchor=\"middle\" transform=\"rotate(-90 18 %g)\"", middle).c_str(),
              plot.y_label);
  for (size_t i = 0; i < plot.curves.size(); ++i) svg += curve_shapes(scales, plot.curves[i], i);
  return svg + "</svg>\n";
}

}  // namespace winnow
