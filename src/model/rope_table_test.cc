#include "model/rope_table.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

std::vector<float> row_of(const RopeConfig& config, int32_t position,
                          std::vector<float> factors = {}) {
  ThreadPool pool(2);
  RopeTable table(config, factors);
  const std::vector<int32_t> positions = {0, position};
  table.fill(positions, pool);
  return {table.row(1), table.row(1) + config.dims};
}

// Values computed in float64 by numpy: cos(position * base^(-2i / dims)).
TEST(RopeTable, AnglesStayExactAtPositionsBeyond64K) {
  const int pairs[] = {0, 1, 2, 8, 32, 63};
  const struct {
    int32_t position;
    double cosines[6];
  } rows[] = {{4097, {0.93477196, -0.96148658, -0.91614828, 0.9586941, -0.57727619, 0.99998708}},
              {65537, {-0.97236198, -0.67144438, -0.80703095, 0.54116432, -0.90625985, 0.99669475}},
              {131071, {-0.8179835, -0.58556921, -0.9975558, -0.8195573, 0.64031238, 0.98680147}},
              {262143, {-0.60916149, 0.46727847, 0.87297929, 0.17179524, -0.17901637, 0.94755389}}};
  for (const auto& want : rows) {
    const std::vector<float> row = row_of({.dims = 128, .base = 1e6}, want.position);
    for (int i = 0; i < 6; ++i)
      EXPECT_NEAR(row[static_cast<size_t>(pairs[i])], want.cosines[i], 1e-6);
  }
}

// Likewise: the two bases of Gemma 3.
TEST(RopeTable, LocalAndGlobalBasesOfGemma3TurnPairsAsFarAsTheirs) {
  const int pairs[] = {0, 1, 63, 127};
  const double local[] = {0.562379076, 0.789614729, -0.2469156, 0.994231644};
  const double global[] = {0.562379076, 0.690680651, 0.441098634, 0.99999938};
  const std::vector<float> local_row = row_of({.dims = 256, .base = 1e4}, 1000);
  const std::vector<float> global_row = row_of({.dims = 256, .base = 1e6}, 1000);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(local_row[static_cast<size_t>(pairs[i])], local[i], 1e-6);
    EXPECT_NEAR(global_row[static_cast<size_t>(pairs[i])], global[i], 1e-6);
  }
}

TEST(RopeTable, PositionZeroRotatesNothing) {
  const std::vector<float> row = row_of({.dims = 4, .base = 1e4}, 0);
  EXPECT_EQ(row, (std::vector<float>{1, 1, 0, 0}));
}

TEST(RopeTable, LinearScaleAndFactorsDivideTheAngle) {
  const RopeConfig plain{.dims = 2, .base = 1e4};
  EXPECT_EQ(row_of({.dims = 2, .base = 1e4, .linear_scale = 8}, 80), row_of(plain, 10));
  EXPECT_EQ(row_of(plain, 80, {4.0F}), row_of(plain, 20));
}

}  // namespace
}  // namespace winnow
