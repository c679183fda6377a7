#include "attention/block_visits.h"

#include <gtest/gtest.h>

#include <vector>

namespace winnow {
namespace {

using Visits = std::vector<std::vector<int32_t>>;

// What the kernels were asked for: where blocks and steps begin, visit by visit.
Visits& visits() {
  static Visits all;
  return all;
}

// Numbers from 0 on, so many in each visit.
Visits counted(std::initializer_list<int32_t> counts) {
  Visits all;
  int32_t next = 0;
  for (const int32_t count : counts) {
    all.emplace_back();
    for (int32_t i = 0; i < count; ++i) all.back().push_back(next++);
  }
  return all;
}

class BlockVisitsTest : public testing::Test {
 protected:
  void SetUp() override { visits().clear(); }

  static AttentionKernels recording() {
    AttentionKernels kernels{};
    kernels.visit = [](const AttentionTile&, const AttentionBlock* blocks, int32_t num_blocks) {
      visits().emplace_back();
      for (int32_t i = 0; i < num_blocks; ++i) visits().back().push_back(blocks[i].position);
    };
    kernels.visit_steps = [](const AttentionTile&, const AttentionStep* steps, int32_t num_steps) {
      visits().emplace_back();
      for (int32_t i = 0; i < num_steps; ++i) visits().back().push_back(steps[i].token);
    };
    return kernels;
  }
  const AttentionKernels kernels_ = recording();
};

TEST_F(BlockVisitsTest, BlocksComeInTheirOrderAsManyAsTheCacheHolds) {
  struct Case {
    int32_t head_dim, num_blocks;
    std::initializer_list<int32_t> counts;
  };
  for (const Case& c :
       {Case{64, 0, {}}, Case{64, 1, {1}}, Case{64, 16, {16}}, Case{64, 17, {16, 1}},
        Case{80, 25, {12, 12, 1}}, Case{128, 9, {8, 1}}, Case{256, 8, {4, 4}}}) {
    SCOPED_TRACE(c.head_dim);
    visits().clear();
    {
      const AttentionTile tile{.head_dim = c.head_dim};
      BlockVisits some(kernels_, tile);
      for (int32_t i = 0; i < c.num_blocks; ++i) some.add({.position = i});
    }
    EXPECT_EQ(visits(), counted(c.counts));
  }
}

TEST_F(BlockVisitsTest, StepsAreCutWherePagesAre) {
  {
    const AttentionTile tile{.head_dim = 256};
    StepVisits some(kernels_, tile);
    for (int32_t i = 0; i < 35; ++i) some.add({.token = i});
  }
  EXPECT_EQ(visits(), counted({16, 16, 3}));
}

}  // namespace
}  // namespace winnow
