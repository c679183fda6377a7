// A picture of latencies in two panels: how they are distributed, and how gaps went over time.
#pragma once

#include <string>
#include <vector>

namespace winnow {

struct LatencyCurve {
  std::string name;
  std::vector<double> values_ms;
};
struct TimedGap {
  double end_s = 0;
  double gap_ms = 0;
};
struct LatencyPlot {
  std::string title;
  std::string distribution_label;
  std::vector<LatencyCurve> distributions;  // drawn as shares of values at or below
  std::string gaps_label;
  std::vector<TimedGap> gaps;  // drawn as median and longest of each of 60 slots of time
};

// As an SVG file. Milliseconds are on log scales.
std::string latency_svg(const LatencyPlot& plot);

}  // namespace winnow
