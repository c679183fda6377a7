// Curves of quality against cost as an SVG picture.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace winnow {

struct CurvePoint {
  double x = 0;  // in [0, 1], or a little more
  double y = 0;  // drawn on a log scale; what is not above 0 lies on the lower edge
  std::string label = {};
};
struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // joined in this order
};
struct CurvePlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<Curve> curves;
};

// Brings its own background, light or dark as the reader prefers.
std::string curve_svg(const CurvePlot& plot);

}  // namespace winnow
