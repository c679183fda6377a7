// The sampler against probabilities computed here by the definition: sort everything, cut,
// normalise.
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>

namespace winnow {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// The probabilities by the definition, in double.
std::map<TokenId, double> exact(const std::vector<float>& logits, const SamplerOptions& options) {
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](TokenId id) { return static_cast<double>(logits[size_t(id)]); };
  std::stable_sort(order.begin(), order.end(),
                   [&](TokenId a, TokenId b) { return logit(a) > logit(b); });
  if (options.top_k > 0 && size_t(options.top_k) < order.size()) {
    order.resize(size_t(options.top_k));
  }
  const double largest = logit(order[0]);
  const auto weight = [&](TokenId id) {
    return std::exp((logit(id) - largest) / static_cast<double>(options.temperature));
  };
  double total = 0;
  for (const TokenId id : order) total += weight(id);
  double mass = 0;
  size_t kept = 0;
  while (kept < order.size()) {
    mass += weight(order[kept++]) / total;
    if (options.top_p < 1 && mass >= static_cast<double>(options.top_p)) break;
  }
  order.resize(kept);
  std::map<TokenId, double> result;
  double kept_total = 0;
  for (const TokenId id : order) {
    if (weight(id) >= static_cast<double>(options.min_p)) kept_total += result[id] = weight(id);
  }
  for (auto& [id, probability] : result) probability /= kept_total;
  return result;
}

std::vector<float> random_logits(size_t size, float spread, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(size);
  for (float& logit : logits) logit = normal(engine);
  return logits;
}

TokenId first(const SamplerOptions& options, const std::vector<float>& logits,
              const std::vector<TokenId>& prompt = {}) {
  return Sampler(options, prompt).sample(logits).value();
}

// Chi-squared of `draws` draws against the exact probabilities; a token outside them fails at once.
void expect_distribution(const std::vector<float>& logits, SamplerOptions options, int draws) {
  const std::map<TokenId, double> want = exact(logits, options);
  Sampler sampler(options, {});
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler.sample(logits).value()];
  for (const auto& [id, count] : counts) {
    ASSERT_TRUE(want.contains(id)) << "token " << id << " drawn " << count << " times";
  }
  double chi = 0;
  int cells = 0;
  double rare_expected = 0;
  int rare_count = 0;
  const auto add = [&](double expected, int found) {
    chi += (found - expected) * (found - expected) / expected;
    ++cells;
  };
  for (const auto& [id, probability] : want) {
    const double expected = probability * draws;
    if (expected >= 8) {
      add(expected, counts[id]);
    } else {
      rare_expected += expected;
      rare_count += counts[id];
    }
  }
  if (rare_expected >= 8) add(rare_expected, rare_count);
  const double freedom = std::max(1, cells - 1);
  // Six standard deviations of a chi-squared variable.
  EXPECT_LT(chi, freedom + 6 * std::sqrt(2 * freedom)) << "seed " << options.seed;
}

TEST(Sampler, GreedyTakesTheLargestLogitAndTiesGoToTheLowestId) {
  EXPECT_EQ(first({}, {1, 3, 2}), 1);
  EXPECT_EQ(first({}, {3, 3, 3}), 0);
  EXPECT_EQ(first({}, {-kInf, -5, -5}), 1);
  for (size_t at : {0, 1, 15, 16, 17, 31, 49}) {
    std::vector<float> logits(50, -1);
    logits[at] = 0.5f;
    EXPECT_EQ(first({}, logits), TokenId(at));
  }
}

TEST(Sampler, DrawsFollowTheExactProbabilities) {
  const std::vector<float> logits = random_logits(60, 2, 1);
  uint64_t seed = 100;
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    for (const int top_k : {0, -1, 5, 59, 60, 61}) {
      for (const float top_p : {1.0f, 0.9f, 0.3f}) {
        for (const float min_p : {0.0f, 0.1f}) {
          SCOPED_TRACE(testing::Message() << "temperature " << temperature << " top_k " << top_k
                                          << " top_p " << top_p << " min_p " << min_p);
          expect_distribution(logits,
                              {.temperature = temperature,
                               .top_k = top_k,
                               .top_p = top_p,
                               .min_p = min_p,
                               .seed = ++seed},
                              4000);
        }
      }
    }
  }
}

TEST(Sampler, DrawsFromALargeVocabularyStayInsideTheFilters) {
  const std::vector<float> logits = random_logits(262144, 3, 2);
  for (const SamplerOptions& options :
       {SamplerOptions{.temperature = 0.7f, .top_k = 40, .seed = 1},
        SamplerOptions{.temperature = 0.8f, .top_k = 2000, .top_p = 0.95f, .seed = 2},
        SamplerOptions{.temperature = 1, .top_p = 0.2f, .seed = 3},
        SamplerOptions{.temperature = 1, .min_p = 0.05f, .seed = 4}}) {
    SCOPED_TRACE(options.seed);
    expect_distribution(logits, options, 150);
  }
}

TEST(Sampler, EqualLogitsAtTheEdgeOfTopKKeepTheLowestIds) {
  std::vector<float> logits(3000, 1);
  logits[2999] = 2;
  for (const int top_k : {2, 3, 1500}) {
    Sampler sampler({.temperature = 1, .top_k = top_k, .seed = 5}, {});
    TokenId largest = 0;
    for (int i = 0; i < 300; ++i) {
      const TokenId id = sampler.sample(logits).value();
      if (id != 2999) largest = std::max(largest, id);
    }
    EXPECT_LT(largest, top_k - 1);
  }
}

TEST(Sampler, SettingsThatLeaveOneTokenEqualGreedy) {
  const std::vector<float> logits = random_logits(1000, 2, 3);
  const TokenId greedy = first({}, logits);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    EXPECT_EQ(first({.temperature = 2, .top_k = 1, .seed = seed}, logits), greedy);
    EXPECT_EQ(first({.temperature = 2, .top_p = 0, .seed = seed}, logits), greedy);
    EXPECT_EQ(first({.temperature = 2, .top_p = 1e-9f, .seed = seed}, logits), greedy);
    EXPECT_EQ(first({.temperature = 2, .min_p = 1, .seed = seed}, logits), greedy);
    EXPECT_EQ(first({.temperature = 1e-6f, .seed = seed}, logits), greedy);
    EXPECT_EQ(
        first({.temperature = std::numeric_limits<float>::denorm_min(), .seed = seed}, logits),
        greedy);
  }
}

TEST(Sampler, TokensAtMinusInfinityAreNeverDrawn) {
  const std::vector<float> logits = {-kInf, 0, -kInf, 0, -kInf};
  Sampler sampler({.temperature = 100, .seed = 6}, {});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(sampler.sample(logits).value() % 2, 1);
}

TEST(Sampler, TheSameSeedGivesTheSameTokensAndAnotherSeedOthers) {
  const std::vector<float> logits = random_logits(500, 1, 4);
  const auto draw = [&](uint64_t seed) {
    Sampler sampler({.temperature = 1, .seed = seed}, {});
    std::vector<TokenId> ids;
    for (int i = 0; i < 40; ++i) ids.push_back(sampler.sample(logits).value());
    return ids;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
  EXPECT_NE(draw(0), draw(UINT64_MAX));
}

TEST(Sampler, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogitsOfSeenTokens) {
  // Seen tokens 0..2 become 1.3333, -1.5 and 0: each bias finds the point where greedy changes.
  const std::vector<float> logits = {2, -1, 0, -3};
  const std::vector<TokenId> prompt = {0, 1, 2, 1};
  const auto greedy = [&](TokenId rival, float bias) {
    return first({.repetition_penalty = 1.5f, .logit_bias = {{rival, bias}}}, logits, prompt);
  };
  EXPECT_EQ(greedy(3, 3 + 1.333f), 0);
  EXPECT_EQ(greedy(3, 3 + 1.334f), 3);
  const std::vector<float> negative = {-1, -1.49f, -1.51f};
  EXPECT_EQ(first({.repetition_penalty = 1.5f}, negative, {{0}}), 1);
  EXPECT_EQ(first({.repetition_penalty = 1.5f}, {-1, -1.51f, -1.52f}, {{0}}), 0);
}

TEST(Sampler, GeneratedTokensCountForAllPenaltiesAndPromptTokensForRepetitionOnly) {
  const std::vector<float> logits = {2, 1.5f, 1};
  Sampler presence({.presence_penalty = 0.75f}, std::vector<TokenId>{1});
  EXPECT_EQ(presence.sample(logits).value(), 0);
  EXPECT_EQ(presence.sample(logits).value(), 1);  // 1.25 1.5 1
  EXPECT_EQ(presence.sample(logits).value(), 0);  // 1.25 0.75 1
  EXPECT_EQ(presence.sample(logits).value(), 0);  // subtracted once only
  Sampler frequency({.frequency_penalty = 0.4f}, std::vector<TokenId>{0, 0, 0});
  std::vector<TokenId> ids;
  for (int i = 0; i < 6; ++i) ids.push_back(frequency.sample(logits).value());
  // 2 1.5 1 | 1.6 1.5 1 | 1.2 1.5 1 | 1.2 1.1 1 | 0.8 1.1 1 | 0.8 0.7 1
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 0, 1, 0, 1, 2}));
}

TEST(Sampler, LogitBiasForcesAndBans) {
  EXPECT_EQ(first({.logit_bias = {{2, 100}}}, {5, 4, 1}), 2);
  EXPECT_EQ(first({.logit_bias = {{0, -100}}}, {5, 4, 1}), 1);
  EXPECT_EQ(first({.logit_bias = {{0, -0.75f}, {0, -0.75f}}}, {5, 4, 1}), 1);
  EXPECT_EQ(first({.logit_bias = {{0, -100}, {1, -100}, {2, -100}}}, {5, 4, 1}), 0);
}

TEST(Sampler, BrokenLogitsAreAnErrorWhateverTheSettings) {
  const std::vector<SamplerOptions> all = {{},
                                           {.temperature = 1},
                                           {.temperature = 1, .top_k = 3},
                                           {.temperature = 1, .top_p = 0.5f},
                                           {.temperature = 1, .min_p = 0.1f},
                                           {.repetition_penalty = 2},
                                           {.logit_bias = {{1, -50}}}};
  for (const SamplerOptions& options : all) {
    for (const size_t size : {5, 16, 50}) {
      for (const size_t at : {size_t{0}, size / 2, size - 1}) {
        for (const float bad : {kNaN, kInf}) {
          std::vector<float> logits(size, 1);
          logits[at] = bad;
          Result<TokenId> result = Sampler(options, {}).sample(logits);
          ASSERT_FALSE(result.ok());
          EXPECT_EQ(result.error().code, ErrorCode::kNumerical);
          EXPECT_NE(result.error().message.find("token " + std::to_string(at)), std::string::npos);
        }
      }
      Result<TokenId> result = Sampler(options, {}).sample(std::vector<float>(size, -kInf));
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, ErrorCode::kNumerical);
    }
  }
  EXPECT_FALSE(Sampler({}, {}).sample({}).ok());
}

TEST(Sampler, OptionsOutOfRangeAreRefusedByName) {
  const std::vector<std::pair<SamplerOptions, std::string>> bad = {
      {{.temperature = -1}, "temperature: expected a number from 0 to 100, found -1"},
      {{.temperature = 1e9f}, "temperature"},
      {{.temperature = kNaN}, "temperature"},
      {{.top_k = -2}, "top_k: expected a count, or 0 or -1 for all tokens, found -2"},
      {{.top_p = 1.1f}, "top_p: expected a number from 0 to 1, found 1.1"},
      {{.top_p = -0.1f}, "top_p"},
      {{.top_p = kNaN}, "top_p"},
      {{.min_p = -0.1f}, "min_p"},
      {{.min_p = 1.1f}, "min_p"},
      {{.repetition_penalty = 0}, "repetition_penalty: expected a number above 0"},
      {{.repetition_penalty = -1}, "repetition_penalty"},
      {{.repetition_penalty = kNaN}, "repetition_penalty"},
      {{.presence_penalty = kInf}, "presence_penalty"},
      {{.frequency_penalty = kNaN}, "frequency_penalty"},
      {{.logit_bias = {{10, 1}}}, "logit_bias: expected token ids from 0 to 9, found 10"},
      {{.logit_bias = {{-1, 1}}}, "logit_bias"},
      {{.logit_bias = {{1, kInf}}}, "logit_bias: expected a number from -1000 to 1000, found inf"},
  };
  for (const auto& [options, message] : bad) {
    const Status status = validate(options, 10);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
  }
  EXPECT_TRUE(validate({}, 10).ok());
  EXPECT_TRUE(validate({.temperature = 2, .top_k = -1, .top_p = 0, .min_p = 1}, 10).ok());
}

}  // namespace
}  // namespace winnow
