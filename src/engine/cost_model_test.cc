#include "engine/cost_model.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

ModelConfig one_layer(int32_t window) {
  LayerConfig layer;
  layer.attention = window > 0 ? AttentionKind::kWindow : AttentionKind::kFull;
  layer.window = window;
  layer.heads = 2;
  layer.kv_heads = 1;
  layer.head_dim = 16;
  layer.ffn_width = 100;
  ModelConfig config;
  config.width = 32;
  config.layers = {layer};
  return config;
}

// 32 x (64 + 32) projections, 3 x 32 x 100 FFN; 2 x 2 x 16 per token seen.
constexpr double kLinear = 32 * 96 + 3 * 32 * 100;
constexpr double kPair = 64;

TEST(PrefillCost, AttentionGrowsWithPosition) {
  const PrefillCost cost(one_layer(0));
  EXPECT_DOUBLE_EQ(cost.of(0, 1), kLinear + kPair);
  EXPECT_DOUBLE_EQ(cost.of(99, 100), kLinear + 100 * kPair);
}

TEST(PrefillCost, WindowLayersStopGrowing) {
  const PrefillCost cost(one_layer(8));
  EXPECT_DOUBLE_EQ(cost.of(7, 8), kLinear + 8 * kPair);
  EXPECT_DOUBLE_EQ(cost.of(1000, 1001), kLinear + 8 * kPair);
}

TEST(PrefillCost, FullAttentionCountsByTheShareThatIsComputed) {
  EXPECT_DOUBLE_EQ(PrefillCost(one_layer(0)).of(99, 100, 0.25), kLinear + 25 * kPair);
  EXPECT_DOUBLE_EQ(PrefillCost(one_layer(8)).of(99, 100, 0.25), kLinear + 8 * kPair);
}

TEST(PrefillCost, TheTimeLeftGrowsWithWhatLaterTokensSee) {
  const PrefillCost cost(one_layer(0));
  EXPECT_EQ(cost.eta_s(0, 128, 128, 1000, 1), 0);
  EXPECT_DOUBLE_EQ(cost.eta_s(2, 128, 256, 512, 1), 2 * cost.of(256, 512) / cost.of(128, 256));
  EXPECT_GT(cost.eta_s(2, 128, 256, 4096, 1), cost.eta_s(2, 128, 256, 4096, 0.2));
}

TEST(PrefillCost, PartsAddUpToTheWhole) {
  for (const int32_t window : {0, 5}) {
    const PrefillCost cost(one_layer(window));
    EXPECT_DOUBLE_EQ(cost.of(0, 300), cost.of(0, 128) + cost.of(128, 300));
  }
}

}  // namespace
}  // namespace winnow
