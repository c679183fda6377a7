#include "engine/step_budget.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(StepBudget, IsWholeWhereNobodyWaitsForAToken) {
  EXPECT_EQ(StepBudget(512, 0.05).prompt_tokens(0), 512);
}

TEST(StepBudget, IsOnePageUntilCostsAreKnown) {
  EXPECT_EQ(StepBudget(512, 0.05).prompt_tokens(3), 128);
}

TEST(StepBudget, FillsWhatTheTargetLeaves) {
  StepBudget budget(1024, 0.5);
  budget.observe(0, 4, 0.1);      // 0.1 s for those who generate
  budget.observe(512, 4, 0.612);  // 1 ms for a prompt token
  EXPECT_EQ(budget.prompt_tokens(4), 384);
}

TEST(StepBudget, DoublesAStepWithoutPromptTokensWhereNoTargetIsSet) {
  StepBudget budget(1024, {});
  budget.observe(0, 4, 0.3);
  budget.observe(512, 0, 0.512);
  EXPECT_EQ(budget.prompt_tokens(4), 256);
}

TEST(StepBudget, NeverFallsBelowTwoPagesWhereNoTargetIsSet) {
  StepBudget budget(1024, {});
  EXPECT_EQ(budget.prompt_tokens(4), 256);
  budget.observe(0, 4, 0.01);
  budget.observe(512, 0, 0.512);
  EXPECT_EQ(budget.prompt_tokens(4), 256);
  EXPECT_EQ(StepBudget(128, {}).prompt_tokens(4), 128);
}

TEST(StepBudget, NeverFallsBelowAPage) {
  StepBudget budget(1024, 0.01);
  budget.observe(0, 4, 0.3);
  budget.observe(512, 0, 0.512);
  EXPECT_EQ(budget.prompt_tokens(4), 128);
}

TEST(StepBudget, FollowsCostsThatGrow) {
  StepBudget budget(1024, 0.5);
  budget.observe(0, 1, 0.1);
  for (int i = 0; i < 30; ++i) budget.observe(128, 1, 0.1 + 0.128 * 2);
  EXPECT_EQ(budget.prompt_tokens(1), 128);
  for (int i = 0; i < 30; ++i) budget.observe(128, 1, 0.1 + 0.0128);
  EXPECT_EQ(budget.prompt_tokens(1), 1024);
}

}  // namespace
}  // namespace winnow
