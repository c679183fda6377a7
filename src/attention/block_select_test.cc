#include "attention/block_select.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace winnow {
namespace {

using Blocks = std::vector<int32_t>;

struct Lists {
  Blocks kept;
  Blocks left_out;
};

template <class Select>
Lists split(size_t count, Select select) {
  Lists lists{Blocks(count), Blocks(count)};
  BlockSplit result{lists.kept.data(), lists.left_out.data()};
  select(result);
  lists.kept.resize(static_cast<size_t>(result.num_kept));
  lists.left_out.resize(static_cast<size_t>(result.num_left_out));
  return lists;
}
Lists by_share(const std::vector<float>& shares, float least, int32_t first_block) {
  return split(shares.size(),
               [&](BlockSplit& result) { split_by_share(shares, least, first_block, result); });
}
Lists by_best(const std::vector<float>& scores, float alpha, const ForcedBlocks& forced) {
  return split(scores.size(),
               [&](BlockSplit& result) { split_by_best(scores, alpha, forced, result); });
}

constexpr ForcedBlocks kNoneForced{0, 1000};

TEST(BlockSelect, KeepsSharesThatReachTheLeastAndCountsFromTheFirstBlock) {
  const Lists lists = by_share({0.5F, 0.1F, 0.25F, 0, 0.2F}, 0.25F, 10);
  EXPECT_EQ(lists.kept, (Blocks{10, 12}));
  EXPECT_EQ(lists.left_out, (Blocks{11, 13, 14}));
}

TEST(BlockSelect, ANaNShareIsKept) {
  const Lists lists = by_share({NAN, 0.1F, NAN}, 0.5F, 0);
  EXPECT_EQ(lists.kept, (Blocks{0, 2}));
  EXPECT_EQ(lists.left_out, (Blocks{1}));
}

TEST(BlockSelect, ALeastShareOfZeroKeepsEverything) {
  EXPECT_EQ(by_share({0, 0.5F, 0}, 0, 3).kept, (Blocks{3, 4, 5}));
}

TEST(BlockSelect, NoBlocksMakeEmptyLists) {
  EXPECT_TRUE(by_share({}, 0.5F, 7).kept.empty());
  EXPECT_TRUE(by_best({}, 0.5F, {2, 0}).left_out.empty());
}

TEST(BlockSelect, KeepsScoresThatReachAlphaTimesTheBest) {
  const Lists lists = by_best({8, 3, 4, 1, 3.9F}, 0.5F, kNoneForced);
  EXPECT_EQ(lists.kept, (Blocks{0, 2}));
  EXPECT_EQ(lists.left_out, (Blocks{1, 3, 4}));
}

TEST(BlockSelect, KeepsTheFirstBlocksAndTheWindowWhateverTheyScore) {
  const std::vector<float> scores = {0, 0, 9, 0, 0, 0, 0};
  EXPECT_EQ(by_best(scores, 0.5F, {1, 5}).kept, (Blocks{0, 2, 5, 6}));
  EXPECT_EQ(by_best(scores, 0.5F, {0, -2}).kept, (Blocks{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(by_best(scores, 0.5F, {9, 1000}).kept.size(), 7U);
}

TEST(BlockSelect, ANaNScoreIsKeptAndSetsNoThreshold) {
  const Lists lists = by_best({2, NAN, 1.5F, 0.1F}, 0.5F, kNoneForced);
  EXPECT_EQ(lists.kept, (Blocks{0, 1, 2}));
  EXPECT_EQ(lists.left_out, (Blocks{3}));
}

}  // namespace
}  // namespace winnow
