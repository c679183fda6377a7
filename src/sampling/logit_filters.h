// The steps between logits and a draw, as plain functions: find the largest, keep the top k, keep
// the nucleus. None of them sorts the vocabulary: 260K tokens cost one pass, and only what is kept
// gets ordered.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace winnow {

// A token that may still be drawn.
struct Candidate {
  TokenId id = 0;
  float logit = 0;
  float weight = 0;  // probability up to a common factor; 1 for the most likely token
};

// Most likely first; equal logits by ascending id.
inline bool more_likely(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The largest logit. kNumerical if there is none: any logit is NaN or +inf, or all are -inf.
Result<float> largest_logit(std::span<const float> logits);
// The lowest id whose logit is `largest`, which must be among them.
TokenId first_with_logit(std::span<const float> logits, float largest);

// The k most likely tokens in order, weights not yet set. Requires 1 <= k < logits.size().
void keep_top_k(std::span<const float> logits, int32_t k, std::vector<Candidate>& kept);

// Sets every weight to exp((logit - largest) / temperature) and returns their sum.
double set_weights(std::span<Candidate> candidates, float largest, float temperature);

// Shortens `candidates` to the smallest set of most likely tokens whose weights reach top_p *
// total, in order; at least one. Requires 0 <= top_p < 1 and a non-empty set.
void keep_nucleus(std::vector<Candidate>& candidates, float top_p, double total);

}  // namespace winnow
