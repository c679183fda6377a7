#include "cli/curve_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/formatted.h"
#include "cli/plot_shapes.h"

namespace winnow {
namespace {

constexpr double kWidth = 760;
constexpr double kHeight = 480;
constexpr double kLeft = 76;
constexpr double kRight = 28;
constexpr double kTop = 52;
constexpr double kBottom = 58;

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

std::string grid(const Scales& scales) {
  std::string svg;
  const double bottom = kHeight - kBottom;
  const double step = scales.x_end > 0.55 ? 0.1 : 0.05;
  for (int i = 0; i * step <= scales.x_end + 1e-9; ++i) {
    const double x = scales.x(i * step);
    svg += plot_line(x, kTop, x, bottom, "grid");
    svg += plot_text(x, bottom + 18, R"(text-anchor="middle")", formatted("%g", i * step));
  }
  const bool few_decades = scales.last_decade - scales.first_decade <= 2;
  for (int decade = scales.first_decade; decade <= scales.last_decade; ++decade) {
    for (int digit = 1; digit < (decade == scales.last_decade ? 2 : 10); ++digit) {
      const double value = digit * std::pow(10.0, decade);
      const bool labelled = digit == 1 || (few_decades && (digit == 2 || digit == 5));
      if (!labelled) continue;
      const double y = scales.y(value);
      svg += plot_line(kLeft, y, kWidth - kRight, y, "grid");
      svg += plot_text(kLeft - 8, y + 4, R"(text-anchor="end")", formatted("%g", value));
    }
  }
  svg += plot_line(kLeft, bottom, kWidth - kRight, bottom, "axis");
  return svg + plot_line(kLeft, kTop, kLeft, bottom, "axis");
}

std::string curve_shapes(const Scales& scales, const Curve& curve, size_t idx) {
  std::string svg = formatted("<g class=\"c%zu\">\n<polyline points=\"", idx % kNumPlotColors);
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
               ? plot_text(x + 7, y - 6, R"(class="small")", point.label)
               : plot_text(x - 7, y + 14, R"(class="small" text-anchor="end")", point.label);
  }
  const double key_y = kTop + 16 + 20 * static_cast<double>(idx);
  const double key_x = kWidth - kRight - 110;
  svg += formatted("<polyline points=\"%.1f,%.1f %.1f,%.1f\"/>\n", key_x, key_y, key_x + 28, key_y);
  svg += plot_text(key_x + 36, key_y + 4, "", curve.name);
  return svg + "</g>\n";
}

}  // namespace

std::string curve_svg(const CurvePlot& plot) {
  const Scales scales(plot.curves);
  std::string svg = plot_begin(kWidth, kHeight);
  svg += grid(scales);
  svg += plot_text(kWidth / 2, 28, R"(class="title" text-anchor="middle")", plot.title);
  svg += plot_text((kLeft + kWidth - kRight) / 2, kHeight - 16, R"(text-anchor="middle")",
                   plot.x_label);
  const double middle = (kTop + kHeight - kBottom) / 2;
  svg +=
      plot_text(18, middle,
                formatted("text-anchor=\"middle\" transform=\"rotate(-90 18 %g)\"", middle).c_str(),
                plot.y_label);
  for (size_t i = 0; i < plot.curves.size(); ++i) svg += curve_shapes(scales, plot.curves[i], i);
  return svg + "</svg>\n";
}

}  // namespace winnow
