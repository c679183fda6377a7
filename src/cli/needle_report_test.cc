#include "cli/needle_report.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

using enum NeedleKind;

const std::vector<NeedleResult> kResults = {
    {.name = "seed 0",
     .num_tokens = 4096,
     .cells = {{kAskedAfter, 0.05, 7, 7, 6}, {kRecalledInside, 0.31, 7, 7, 7}}},
    {.name = "seed 1",
     .num_tokens = 4096,
     .cells = {{kAskedAfter, 0.15, 7, 7, 7}, {kRecalledInside, 0.39, 7, 6, 0}}}};

TEST(NeedleReport, OnlyWholeNumbersAreExact) {
  const std::vector<NeedleCell> cells = {kResults[0].cells[0], kResults[1].cells[0]};
  const NeedleTally sum = tally(cells, kAskedAfter, true);
  EXPECT_EQ(sum.num_needles, 2);
  EXPECT_EQ(sum.num_exact, 1);
  EXPECT_EQ(sum.num_digits, 14);
  EXPECT_EQ(sum.num_digits_right, 13);
  EXPECT_EQ(tally(cells, kRecalledInside, true).num_needles, 0);
}

TEST(NeedleReport, PromptsOfOneLengthAreAddedUp) {
  const boost::json::object json = needle_json(kResults);
  EXPECT_EQ(json.at("cells").as_array().size(), 4U);
  ASSERT_EQ(json.at("lengths").as_array().size(), 1U);
  const boost::json::value& length = json.at("lengths").at(0);
  EXPECT_EQ(length.at("prompts").as_int64(), 2);
  EXPECT_EQ(length.at("dense").at("inside").at("exact").as_int64(), 1);
  EXPECT_EQ(length.at("sparse").at("inside").at("digits_right").as_int64(), 7);
}

TEST(NeedleReport, TheHeatMapShowsEachDepth) {
  const std::string svg = needle_svg(kResults);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  // Inside, both numbers stand between 30 and 40 %: half of the sparse digits are right.
  EXPECT_NE(svg.find(">50</text>"), std::string::npos);
  EXPECT_NE(svg.find(">93</text>"), std::string::npos);
}

}  // namespace
}  // namespace winnow
