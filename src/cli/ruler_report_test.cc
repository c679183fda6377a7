#include "cli/ruler_report.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(RulerReport, AScoreIsTheShareOfReferencesFound) {
  const std::vector<std::string> references = {"Apple", "1234567"};
  EXPECT_EQ(ruler_score("an APPLE and 1234567.", references), 1);
  EXPECT_EQ(ruler_score("pineapples", references), 0.5);
  EXPECT_EQ(ruler_score("", references), 0);
}

TEST(RulerReport, TheIntervalOfEqualNumbersIsTheNumber) {
  const std::vector<std::vector<double>> groups = {{-2, -2, -2}, {4, 4}};
  const Interval interval = bootstrap_interval(groups);
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 1);
}

TEST(RulerReport, TheIntervalIsThatOfTheNormalApproximation) {
  std::vector<double> group;
  for (int i = 0; i < 400; ++i) group.push_back(i % 2 == 0 ? 1 : -1);
  const Interval interval = bootstrap_interval({{group}});
  EXPECT_NEAR(interval.high, 1.96 / 20, 0.01);
  EXPECT_NEAR(interval.low, -1.96 / 20, 0.01);
}

TEST(RulerReport, TasksWeighAlikeAndUnsolvedOnesAreLeftOutOfTheSolved) {
  const std::vector<RulerResult> results = {{.task = "a", .dense_score = 1, .sparse_score = 1},
                                            {.task = "a", .dense_score = 1, .sparse_score = 0},
                                            {.task = "b", .dense_score = 0, .sparse_score = 0.2}};
  const boost::json::object json = ruler_json(results);
  EXPECT_EQ(json.at("tasks").as_array().size(), 2U);
  EXPECT_DOUBLE_EQ(json.at("tasks").at(0).at("difference").as_double(), -50);
  EXPECT_DOUBLE_EQ(json.at("all").at("dense").as_double(), 50);
  EXPECT_DOUBLE_EQ(json.at("all").at("difference").as_double(), -15);
  EXPECT_DOUBLE_EQ(json.at("solved").at("difference").as_double(), -50);
  EXPECT_EQ(json.at("samples").as_array().size(), 3U);
}

}  // namespace
}  // namespace winnow
