#include "cli/latency_plot.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace winnow {
namespace {

// Whether all points of all curves lie on the picture.
void expect_points_inside(const std::string& svg) {
  constexpr std::string_view kPoints = "points=\"";
  for (size_t at = svg.find(kPoints); at != std::string::npos; at = svg.find(kPoints, at + 1)) {
    const size_t begin = at + kPoints.size();
    const std::string list = svg.substr(begin, svg.find('"', begin) - begin);
    int read = 0;
    double x = 0;
    double y = 0;
    for (const char* next = list.c_str(); std::sscanf(next, "%lf,%lf %n", &x, &y, &read) == 2;) {
      EXPECT_TRUE(x >= 0 && x <= 1080 && y >= 0 && y <= 420) << list;
      next += read;
    }
  }
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(LatencyPlot, CurvesAreNamedAndLieInside) {
  const std::string svg = latency_svg({.title = "a <b>",
                                       .distribution_label = "TTFT, ms",
                                       .distributions = {{"before", {3, 1, 2}}, {"during", {900}}},
                                       .gaps_label = "ITL, ms",
                                       .gaps = {{0.5, 10}, {1, 20}, {9, 4000}}});
  for (const char* text : {">a &lt;b&gt;<", ">TTFT, ms<", ">before<", ">during<", ">ITL, ms<",
                           ">median<", ">longest<", ">1000<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  expect_points_inside(svg);
}

TEST(LatencyPlot, AnyValuesCanBeDrawn) {
  expect_points_inside(latency_svg({}));
  expect_points_inside(latency_svg({.title = "",
                                    .distribution_label = "",
                                    .distributions = {{"", {}}, {"", {0, 1e-9, 1e9}}},
                                    .gaps_label = "",
                                    .gaps = {{0, 0}, {0, 1e-6}}}));
  expect_points_inside(latency_svg({.title = "",
                                    .distribution_label = "",
                                    .distributions = {{"", std::vector<double>(5000, 7)}},
                                    .gaps_label = "",
                                    .gaps = std::vector<TimedGap>(5000, {2, 10})}));
}

}  // namespace
}  // namespace winnow
