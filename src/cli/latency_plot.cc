#include "cli/latency_plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/formatted.h"
#include "cli/latency_figures.h"
#include "cli/plot_shapes.h"

namespace winnow {
namespace {

constexpr double kWidth = 1080;
constexpr double kHeight = 420;
constexpr double kTop = 64;
constexpr double kBottom = 362;
constexpr size_t kNumSlots = 60;

// From one power of ten to another.
class LogScale {
 public:
  void include(double value) {
    if (!(value > 0)) return;
    least_ = std::min(least_, value);
    most_ = std::max(most_, value);
  }
  int first_decade() const {
    return empty() ? 0 : static_cast<int>(std::floor(std::log10(least_)));
  }
  int last_decade() const {
    const int last = empty() ? 1 : static_cast<int>(std::ceil(std::log10(most_)));
    return std::max(first_decade() + 1, last);
  }
  // In [0, 1]; what is not above 0 lies at the beginning.
  double share(double value) const {
    const double first = first_decade();
    const double lowest = std::pow(10.0, first);
    return (std::log10(std::max(value, lowest)) - first) / (last_decade() - first);
  }

 private:
  bool empty() const { return !(most_ > 0); }
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = 0;
};

// Where one panel lies.
struct Panel {
  double left;
  double right;
  double x(double share) const { return left + share * (right - left); }
  double y(double share) const { return kBottom - share * (kBottom - kTop); }
};
constexpr Panel kDistribution = {70, 510};
constexpr Panel kOverTime = {610, 1050};

std::string axes(const Panel& panel, const std::string& x_label, const std::string& y_label) {
  const double middle = (kTop + kBottom) / 2;
  const double label_x = panel.left - 50;
  return plot_line(panel.left, kBottom, panel.right, kBottom, "axis") +
         plot_line(panel.left, kTop, panel.left, kBottom, "axis") +
         plot_text((panel.left + panel.right) / 2, kBottom + 40, R"(text-anchor="middle")",
                   x_label) +
         plot_text(
             label_x, middle,
             formatted("text-anchor=\"middle\" transform=\"rotate(-90 %g %g)\"", label_x, middle)
                 .c_str(),
             y_label);
}

std::string x_tick(const Panel& panel, double share, const std::string& text) {
  return plot_line(panel.x(share), kTop, panel.x(share), kBottom, "grid") +
         plot_text(panel.x(share), kBottom + 18, R"(text-anchor="middle")", text);
}

std::string y_tick(const Panel& panel, double share, const std::string& text) {
  return plot_line(panel.left, panel.y(share), panel.right, panel.y(share), "grid") +
         plot_text(panel.left - 8, panel.y(share) + 4, R"(text-anchor="end")", text);
}

template <class Tick>
std::string decade_ticks(const LogScale& scale, const Panel& panel, Tick tick) {
  std::string svg;
  for (int decade = scale.first_decade(); decade <= scale.last_decade(); ++decade) {
    const double value = std::pow(10.0, decade);
    svg += tick(panel, scale.share(value), formatted("%g", value));
  }
  return svg;
}

// The longest of 1, 2 and 5 times a power of ten of which about five lie in `length`.
double tick_step(double length) {
  const double fifth = length / 5;
  const double decade = std::pow(10.0, std::floor(std::log10(fifth)));
  return decade * (fifth >= 5 * decade ? 5 : fifth >= 2 * decade ? 2 : 1);
}

// One curve and its name in the key above the panel.
class CurveShape {
 public:
  void add(double x, double y) { points_ += formatted("%.1f,%.1f ", x, y); }
  std::string finish(const Panel& panel, size_t idx, const std::string& name) const {
    constexpr double kKeyWidth = 190;
    const double key_x = panel.left + kKeyWidth * static_cast<double>(idx);
    const double key_y = kTop - 10;
    return formatted("<g class=\"c%zu\">\n<polyline points=\"", idx % kNumPlotColors) + points_ +
           formatted("\"/>\n<polyline points=\"%.1f,%.1f %.1f,%.1f\"/>\n", key_x, key_y, key_x + 24,
                     key_y) +
           plot_text(key_x + 32, key_y + 4, R"(class="small")", name) + "</g>\n";
  }

 private:
  std::string points_;
};

std::string distribution_panel(const LatencyPlot& plot) {
  LogScale scale;
  for (const LatencyCurve& curve : plot.distributions) {
    for (const double value : curve.values_ms) scale.include(value);
  }
  std::string svg = decade_ticks(scale, kDistribution, x_tick);
  for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
    svg += y_tick(kDistribution, share, formatted("%g", share));
  }
  svg += axes(kDistribution, plot.distribution_label, "share at or below");
  for (size_t idx = 0; idx < plot.distributions.size(); ++idx) {
    std::vector<double> values = plot.distributions[idx].values_ms;
    std::sort(values.begin(), values.end());
    // Of very many values not each needs a point.
    constexpr size_t kMaxPoints = 500;
    const size_t stride = values.size() / kMaxPoints + 1;
    CurveShape shape;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % stride != 0 && i + 1 < values.size()) continue;
      const double share = static_cast<double>(i + 1) / static_cast<double>(values.size());
      shape.add(kDistribution.x(scale.share(values[i])), kDistribution.y(share));
    }
    svg += shape.finish(kDistribution, idx, plot.distributions[idx].name);
  }
  return svg;
}

std::string over_time_panel(const LatencyPlot& plot) {
  LogScale scale;
  double end = 0;
  for (const TimedGap& gap : plot.gaps) {
    scale.include(gap.gap_ms);
    end = std::max(end, gap.end_s);
  }
  if (!(end > 0)) end = 1;
  std::vector<std::vector<double>> slots(kNumSlots);
  for (const TimedGap& gap : plot.gaps) {
    const double at = std::clamp(gap.end_s / end, 0.0, 1.0) * kNumSlots;
    slots[std::min(kNumSlots - 1, static_cast<size_t>(at))].push_back(gap.gap_ms);
  }
  CurveShape median;
  CurveShape longest;
  for (size_t i = 0; i < kNumSlots; ++i) {
    if (slots[i].empty()) continue;
    std::sort(slots[i].begin(), slots[i].end());
    const double x = kOverTime.x((static_cast<double>(i) + 0.5) / kNumSlots);
    median.add(x, kOverTime.y(scale.share(percentile(slots[i], 0.5))));
    longest.add(x, kOverTime.y(scale.share(slots[i].back())));
  }
  std::string svg = decade_ticks(scale, kOverTime, y_tick);
  const double step = tick_step(end);
  for (int i = 0; i * step <= end; ++i) {
    svg += x_tick(kOverTime, i * step / end, formatted("%g", i * step));
  }
  svg += axes(kOverTime, "time, s", plot.gaps_label);
  return svg + median.finish(kOverTime, 0, "median") + longest.finish(kOverTime, 1, "longest");
}

}  // namespace

std::string latency_svg(const LatencyPlot& plot) {
  return plot_begin(kWidth, kHeight) +
         plot_text(kWidth / 2, 24, R"(class="title" text-anchor="middle")", plot.title) +
         distribution_panel(plot) + over_time_panel(plot) + "</svg>\n";
}

}  // namespace winnow
