#include "engine/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace winnow {
namespace {

const std::vector<TokenId> kIds = {0, 1, 2, 0, 1, 2};

TEST(Divergence, OfEqualDistributionsIsZeroWhateverTheLogitsOffset) {
  Divergence divergence(kIds, 1, 4);
  const std::vector<float> logits = {1, 2, 3}, shifted = {11, 12, 13};
  for (int64_t position = 1; position < 4; ++position) divergence.add({position, logits, shifted});
  const DivergenceReport report = divergence.report();
  EXPECT_EQ(report.num_positions, 3);
  EXPECT_NEAR(report.mean_kl, 0, 1e-15);
  EXPECT_EQ(report.top1_agreement, 1);
  EXPECT_NEAR(report.reference_perplexity, report.other_perplexity, 1e-12);
}

TEST(Divergence, OfTheSameLogitsIsExactlyZero) {
  Divergence divergence(kIds, 0, 5);
  const std::vector<float> logits = {-1.25F, 7.5F, 3.1F};
  for (int64_t position = 0; position < 5; ++position) divergence.add({position, logits, logits});
  EXPECT_EQ(divergence.report().mean_kl, 0);
  EXPECT_EQ(divergence.report().p99_kl, 0);
}

TEST(Divergence, IsOfTheReferenceFromTheOther) {
  const std::vector<float> reference = {std::log(0.5F), std::log(0.25F), std::log(0.25F)};
  const std::vector<float> other = {std::log(0.2F), std::log(0.6F), std::log(0.2F)};
  Divergence divergence(kIds, 1, 2);
  divergence.add({1, reference, other});
  const DivergenceReport report = divergence.report();
  EXPECT_NEAR(report.mean_kl,
              0.5 * std::log(0.5 / 0.2) + 0.25 * std::log(0.25 / 0.6) + 0.25 * std::log(0.25 / 0.2),
              1e-6);
  EXPECT_EQ(report.top1_agreement, 0);
  // The token after position 1 is 2.
  EXPECT_NEAR(report.reference_perplexity, 1 / 0.25, 1e-5);
  EXPECT_NEAR(report.other_perplexity, 1 / 0.2, 1e-5);
}

TEST(Divergence, ThePercentileIsThatOfTheWorstPositions) {
  std::vector<TokenId> ids(1001, 0);
  Divergence divergence(ids, 0, 1000);
  for (int64_t position = 0; position < 1000; ++position) {
    const bool bad = position % 50 == 0;  // 2 % of them
    const std::vector<float> reference = {0, 0}, other = {bad ? 3.0F : 0.0F, 0};
    divergence.add({position, reference, other});
  }
  const double bad_kl = 0.5 * std::log(0.5 / (1 / (1 + std::exp(-3.0)))) +
                        0.5 * std::log(0.5 / (1 / (1 + std::exp(3.0))));
  EXPECT_NEAR(divergence.report().p99_kl, bad_kl, 1e-6);
  EXPECT_NEAR(divergence.report().mean_kl, bad_kl * 0.02, 1e-6);
}

TEST(Divergence, LogitsThatAreNoNumbersDoNotLookLikeAgreement) {
  const std::vector<float> good = {1, 2, 3};
  const std::vector<float> bad = {1, std::numeric_limits<float>::quiet_NaN(), 3};
  for (const bool in_reference : {true, false}) {
    Divergence divergence(kIds, 0, 2);
    divergence.add({0, good, good});
    divergence.add({1, in_reference ? bad : good, in_reference ? good : bad});
    EXPECT_FALSE(divergence.report().mean_kl < 1);
  }
}

TEST(Divergence, OfNoPositionsIsAnEmptyReport) {
  EXPECT_EQ(Divergence(kIds, 3, 3).report().num_positions, 0);
}

}  // namespace
}  // namespace winnow
