#include "cli/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace winnow {
namespace {

using Values = std::vector<double>;

TEST(Statistics, MeanAndDeviationAreThoseOfASample) {
  EXPECT_DOUBLE_EQ(mean(Values{1, 2, 6}), 3);
  EXPECT_DOUBLE_EQ(standard_deviation(Values{2, 4, 4, 4, 5, 5, 7, 9}), 2.1380899352993952);
  EXPECT_EQ(standard_deviation(Values{5}), 0);
  EXPECT_EQ(mean(Values{}), 0);
}

}  // namespace
}  // namespace winnow
