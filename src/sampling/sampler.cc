#include "sampling/sampler.h"

#include <cmath>
#include <unordered_map>

#include "sampling/logit_filters.h"
#include "sampling/random_stream.h"

namespace winnow {
namespace {

constexpr float kMaxTemperature = 100;
constexpr float kMaxPenalty = 100;
constexpr float kMaxBias = 1000;

Status check_range(const char* field, float value, float min, float max) {
  if (value >= min && value <= max) return Ok{};  // false for NaN
  return fail(ErrorCode::kInvalidArgument, "%s: expected a number from %g to %g, found %g", field,
              static_cast<double>(min), static_cast<double>(max), static_cast<double>(value));
}

}  // namespace

Status validate(const SamplerOptions& options, int32_t vocab_size) {
  TRY_STATUS(check_range("temperature", options.temperature, 0, kMaxTemperature));
  if (options.top_k < -1) {
    return fail(ErrorCode::kInvalidArgument,
                "top_k: expected a count, or 0 or -1 for all tokens, found %d", options.top_k);
  }
  TRY_STATUS(check_range("top_p", options.top_p, 0, 1));
  TRY_STATUS(check_range("min_p", options.min_p, 0, 1));
  if (!(options.repetition_penalty > 0 && options.repetition_penalty <= kMaxPenalty)) {
    return fail(ErrorCode::kInvalidArgument,
                "repetition_penalty: expected a number above 0 and at most %g, found %g",
                static_cast<double>(kMaxPenalty), static_cast<double>(options.repetition_penalty));
  }
  TRY_STATUS(check_range("presence_penalty", options.presence_penalty, -kMaxPenalty, kMaxPenalty));
  TRY_STATUS(
      check_range("frequency_penalty", options.frequency_penalty, -kMaxPenalty, kMaxPenalty));
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return fail(ErrorCode::kInvalidArgument,
                  "logit_bias: expected token ids from 0 to %d, found %d", vocab_size - 1, id);
    }
    TRY_STATUS(check_range("logit_bias", bias, -kMaxBias, kMaxBias));
  }
  return Ok{};
}

struct Sampler::Impl {
  Impl(const SamplerOptions& chosen, std::span<const TokenId> prompt)
      : options(chosen), random(chosen.seed) {
    if (options.repetition_penalty != 1) {
      for (const TokenId id : prompt) seen.try_emplace(id);
    }
  }

  bool penalises() const {
    return options.repetition_penalty != 1 || options.presence_penalty != 0 ||
           options.frequency_penalty != 0;
  }
  std::span<const float> adjust(std::span<const float> logits);
  // `generated`: how often the token was generated.
  float penalised(float logit, int64_t generated) const;
  Result<TokenId> choose(std::span<const float> logits);
  // Fills `candidates` with what top-k leaves, weights set, and returns the sum of the weights.
  double weigh(std::span<const float> logits, float largest);
  TokenId draw();

  SamplerOptions options;
  RandomStream random;
  std::unordered_map<TokenId, int64_t> seen;  // times generated; 0 for tokens of the prompt alone
  std::vector<float> adjusted;                // scratch: logits after bias and penalties
  std::vector<Candidate> candidates;          // scratch: tokens that may still be drawn
};

float Sampler::Impl::penalised(float logit, int64_t generated) const {
  const float divisor = options.repetition_penalty;
  float result = logit > 0 ? logit / divisor : logit * divisor;
  if (generated > 0) {
    result -= options.presence_penalty;
    result -= options.frequency_penalty * static_cast<float>(generated);
  }
  return result;
}

std::span<const float> Sampler::Impl::adjust(std::span<const float> logits) {
  if (options.logit_bias.empty() && (seen.empty() || !penalises())) return logits;
  adjusted.assign(logits.begin(), logits.end());
  const auto size = static_cast<TokenId>(adjusted.size());
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < size) adjusted[static_cast<size_t>(id)] += bias;
  }
  if (penalises()) {
    for (const auto& [id, generated] : seen) {
      if (id < 0 || id >= size) continue;
      float& logit = adjusted[static_cast<size_t>(id)];
      logit = penalised(logit, generated);
    }
  }
  return adjusted;
}

double Sampler::Impl::weigh(std::span<const float> logits, float largest) {
  if (options.top_k > 0 && static_cast<size_t>(options.top_k) < logits.size()) {
    keep_top_k(logits, options.top_k, candidates);
  } else {
    candidates.resize(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      candidates[i] = {static_cast<TokenId>(i), logits[i], 0};
    }
  }
  return set_weights(candidates, largest, options.temperature);
}

TokenId Sampler::Impl::draw() {
  double total = 0;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight >= options.min_p) total += static_cast<double>(candidate.weight);
  }
  const double target = random.next_unit() * total;
  double reached = 0;
  TokenId last = 0;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight < options.min_p || candidate.weight == 0) continue;
    last = candidate.id;
    reached += static_cast<double>(candidate.weight);
    if (reached > target) break;
  }
  return last;
}

Result<TokenId> Sampler::Impl::choose(std::span<const float> logits) {
  TRY(const float largest, largest_logit(logits));
  if (options.temperature == 0 || options.top_k == 1 || options.top_p == 0) {
    return first_with_logit(logits, largest);
  }
  const double total = weigh(logits, largest);
  if (options.top_p < 1) keep_nucleus(candidates, options.top_p, total);
  return draw();
}

Sampler::Sampler(const SamplerOptions& options, std::span<const TokenId> prompt)
    : impl_(std::make_unique<Impl>(options, prompt)) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Result<TokenId> Sampler::sample(std::span<const float> logits) {
  TRY(const TokenId chosen, impl_->choose(impl_->adjust(logits)));
  if (impl_->penalises()) ++impl_->seen[chosen];
  return chosen;
}

}  // namespace winnow
