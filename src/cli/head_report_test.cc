#include "cli/head_report.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

// 10 rows from position 90 on see 955 pairs; of 4 candidates of 8 keys one is kept.
TileSelection tile(int layer_idx, std::span<const int32_t> kept) {
  return {.layer_idx = layer_idx,
          .head = 2,
          .num_heads = 2,
          .first_position = 90,
          .num_positions = 10,
          .block_tokens = 8,
          .kept = kept,
          .first_candidate = 1,
          .end_candidate = 5};
}

TEST(HeadReport, CountsPairsOfEveryHeadOfATile) {
  HeadReport report(0);
  const int32_t kept[] = {3};
  report.on_tile(tile(1, kept));
  report.on_tile(tile(0, {}));
  const boost::json::array heads = report.to_json();
  ASSERT_EQ(heads.size(), 4U);
  EXPECT_EQ(heads[0].at("layer").as_int64(), 0);
  EXPECT_EQ(heads[3].at("head").as_int64(), 3);
  EXPECT_DOUBLE_EQ(heads[0].at("density").as_double(), (955 - 4 * 80) / 955.0);
  EXPECT_DOUBLE_EQ(heads[3].at("density").as_double(), (955 - 3 * 80) / 955.0);
  EXPECT_FALSE(heads[0].as_object().contains("mass_kept"));
}

TEST(HeadReport, ProbesAreMeansOverRows) {
  HeadReport report(1);
  EXPECT_TRUE(report.wants_probe(1, 2, 96));
  report.on_tile(tile(1, {}));
  report.on_probe(
      {.layer_idx = 1, .head = 2, .num_positions = 30, .mass_kept = 1, .output_error = 0});
  report.on_probe(
      {.layer_idx = 1, .head = 2, .num_positions = 10, .mass_kept = 0.6, .output_error = 0.2});
  const boost::json::array heads = report.to_json();
  EXPECT_DOUBLE_EQ(heads[0].at("mass_kept").as_double(), 0.9);
  EXPECT_DOUBLE_EQ(heads[0].at("output_error").as_double(), 0.05);
}

TEST(HeadReport, OneTileInSoManyIsProbed) {
  const HeadReport report(8);
  for (const int32_t tile_positions : {16, 128}) {
    int wanted = 0;
    for (int32_t i = 0; i < 8000; ++i) {
      wanted += report.wants_probe(3, i % 4, i * tile_positions) ? 1 : 0;
    }
    EXPECT_NEAR(wanted, 1000, 150);
  }
  EXPECT_FALSE(HeadReport(0).wants_probe(0, 0, 0));
}

}  // namespace
}  // namespace winnow
