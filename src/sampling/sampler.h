// Sampler: one sequence's choice of its next token from logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace winnow {

struct SamplerOptions {
  float temperature = 0;         // 0 = greedy; up to 100
  int32_t top_k = 0;             // 0 or -1 = all
  float top_p = 1;               // in [0, 1]; 0 keeps the most likely token alone
  float min_p = 0;               // in [0, 1]
  float repetition_penalty = 1;  // divides positive, multiplies negative logits of seen tokens; > 0
  float presence_penalty = 0;    // subtracted once from a token already generated
  float frequency_penalty = 0;   // subtracted per time generated
  // Added first; values in [-1000, 1000]. Entries of one token add up.
  std::vector<std::pair<TokenId, float>> logit_bias = {};
  uint64_t seed = 0;
};

// kInvalidArgument naming the field, its range and the value found.
Status validate(const SamplerOptions& options, int32_t vocab_size);

// The order is: bias, penalties, temperature, top-k, top-p, min-p, draw. Ties go to the lowest id.
// The random stream is the sequence's own: the same seed gives the same tokens whatever runs beside
// it.
class Sampler {
 public:
  // `prompt` counts for the repetition penalty only. Requires validate(options) to hold.
  Sampler(const SamplerOptions& options, std::span<const TokenId> prompt);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  // The next token, which also counts as generated. kNumerical if any logit is NaN or +inf, or all
  // are -inf.
  Result<TokenId> sample(std::span<const float> logits);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
