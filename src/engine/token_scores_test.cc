#include "engine/token_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace winnow {
namespace {

TEST(RowSoftmax, ProbabilitiesAddUpToOne) {
  const std::vector<float> logits{1, -2, 30, 29.5F, 0};
  const RowSoftmax softmax(logits);
  double sum = 0;
  for (TokenId id = 0; id < 5; ++id) sum += std::exp(softmax.logprob(id));
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_EQ(softmax.best(), 2);
}

TEST(RowSoftmax, TheMostLikelyTokensComeFirstAndTiesByTheirIds) {
  const std::vector<float> logits{1, 3, 3, -std::numeric_limits<float>::infinity(), 2, 3};
  const ScoredToken scored = RowSoftmax(logits).score(4, 4);
  std::vector<TokenId> ids;
  for (const TokenLogprob& entry : scored.top) ids.push_back(entry.token);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 2, 5, 4}));
  EXPECT_EQ(scored.logprob, scored.top[3].logprob);
  EXPECT_EQ(scored.rank, 4);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(RowSoftmax(logits).score(ids[static_cast<size_t>(i)], 0).rank, i + 1);
  }
  EXPECT_EQ(RowSoftmax(logits).score(3, 0).rank, 6) << "the least likely";
}

TEST(RowSoftmax, NoMoreTokensAreNamedThanThereAre) {
  const std::vector<float> logits{1, 3};
  EXPECT_EQ(RowSoftmax(logits).score(0, 20).top.size(), 2U);
  EXPECT_TRUE(RowSoftmax(logits).score(0, 0).top.empty());
}

}  // namespace
}  // namespace winnow
