#include "cli/curve_plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace winnow {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

CurvePlot plot_of(std::vector<Curve> curves) {
  return {.title = "t", .x_label = "x", .y_label = "y", .curves = std::move(curves)};
}

TEST(CurvePlot, EveryPointIsDrawnAndLabelledAndEveryCurveNamed) {
  const std::string svg = curve_svg(
      plot_of({{"winnow", {{0.2, 0.01, "p1"}, {0.3, 0.004, "p2"}}}, {"v2", {{0.3, 0.2, "p3"}}}}));
  EXPECT_EQ(count(svg, "<circle"), 3U);
  EXPECT_EQ(count(svg, "<polyline"), 4U);  // a curve and its key each
  for (const char* text : {">p1<", ">p2<", ">p3<", ">winnow<", ">v2<", ">0.001<", ">1<"}) {
    EXPECT_EQ(count(svg, text), 1U) << text;
  }
}

TEST(CurvePlot, TextIsEscaped) {
  const std::string svg = curve_svg({"<t> & 'u'", "x", "y", {{"<n>", {{0.5, 0.1, "<p>"}}}}});
  EXPECT_NE(svg.find(">&lt;t&gt; &amp; &#39;u&#39;<"), std::string::npos);
  EXPECT_EQ(count(svg, "<n>") + count(svg, "<p>"), 0U);
}

TEST(CurvePlot, PointsLieInsideWhateverTheirValues) {
  for (const double y : {0.0, 1e-12, 1e-3, 5.0}) {
    const std::string svg = curve_svg(plot_of({{"c", {{0.2, y, ""}, {1.0, 0.01, ""}}}}));
    EXPECT_EQ(count(svg, "nan") + count(svg, "inf"), 0U) << y;
    for (size_t at = svg.find("<circle"); at != std::string::npos;
         at = svg.find("<circle", at + 1)) {
      double cx = 0;
      double cy = 0;
      ASSERT_EQ(std::sscanf(svg.c_str() + at, "<circle cx=\"%lf\" cy=\"%lf\"", &cx, &cy), 2);
      EXPECT_TRUE(cx >= 0 && cx <= 760 && cy >= 0 && cy <= 480) << y;
    }
  }
  EXPECT_EQ(count(curve_svg(plot_of({})), "<circle"), 0U);
}

}  // namespace
}  // namespace winnow
