#include "attention/selection_map.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

using Kind = SelectionMap::Kind;

// 256 tokens in cells of 32; blocks 2 to 5 are candidates of the tile of positions 224 to 239.
TileSelection tile(std::span<const int32_t> kept) {
  return {.layer_idx = 1,
          .head = 2,
          .first_position = 224,
          .num_positions = 16,
          .block_tokens = 32,
          .kept = kept,
          .first_candidate = 2,
          .end_candidate = 6};
}

TEST(SelectionMap, ForcedAndKeptBlocksAreKeptAndTheOthersAreNot) {
  SelectionMap map(256, 64, std::nullopt, std::nullopt);
  ASSERT_EQ(map.side(), 8);
  const int32_t kept[] = {3};
  map.on_tile(tile(kept));
  ASSERT_EQ(map.heads().size(), 1U);
  const SelectionMap::Head& head = map.heads()[0];
  EXPECT_EQ(head.layer_idx, 1);
  EXPECT_EQ(head.head, 2);
  const double want[] = {1, 1, 0, 1, 0, 0, 1, 1};
  for (int column = 0; column < 8; ++column) {
    EXPECT_EQ(map.cell(head, 7, column).kind, Kind::kSparse);
    EXPECT_EQ(map.cell(head, 7, column).kept, want[column]) << column;
  }
  EXPECT_EQ(map.cell(head, 6, 3).kind, Kind::kDense);
  EXPECT_EQ(map.cell(head, 3, 6).kind, Kind::kUnseen);
  EXPECT_DOUBLE_EQ(SelectionMap::density(head), (7 * 32 - 3 * 32 + 16) / (7 * 32 + 16.0));
}

TEST(SelectionMap, LargeCellsHoldTheShareOfWhatWasKept) {
  SelectionMap map(256, 2, std::nullopt, std::nullopt);
  ASSERT_EQ(map.cell_tokens(), 128);
  const int32_t kept[] = {3};
  map.on_tile(tile(kept));
  EXPECT_EQ(map.cell(map.heads()[0], 1, 0).kept, 0.75);
  EXPECT_DOUBLE_EQ(map.cell(map.heads()[0], 1, 1).kept, 48.0 / 112);
}

TEST(SelectionMap, ATileBelongsToAllHeadsThatShareItAndToAllRowsItCovers) {
  SelectionMap map(256, 64, 1, std::nullopt);
  TileSelection shared = tile({});
  shared.num_heads = 3;
  shared.first_position = 192;
  shared.num_positions = 64;
  map.on_tile(shared);
  shared.layer_idx = 0;  // not asked for
  map.on_tile(shared);
  ASSERT_EQ(map.heads().size(), 3U);
  EXPECT_EQ(map.heads()[2].head, 4);
  for (const int row : {6, 7}) {
    EXPECT_EQ(map.cell(map.heads()[1], row, 0).kept, 1);
    EXPECT_EQ(map.cell(map.heads()[1], row, 2).kept, 0);
  }
}

TEST(SelectionMap, HeadsAreInOrderHoweverTheyCome) {
  SelectionMap map(256, 64, std::nullopt, 2);
  for (const int layer : {3, 0, 2, 0}) {
    TileSelection one = tile({});
    one.layer_idx = layer;
    map.on_tile(one);
  }
  ASSERT_EQ(map.heads().size(), 3U);
  const int layers[] = {0, 2, 3};
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(map.heads()[i].layer_idx, layers[i]);
}

}  // namespace
}  // namespace winnow
