#include "sampling/logit_filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace winnow {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Beyond this many, selecting from a full copy beats a heap that most tokens would enter.
constexpr int32_t kHeapLimit = 1024;

Error no_largest(std::span<const float> logits, float largest) {
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      return fail(ErrorCode::kNumerical, "logit of token %zu: expected a number, found NaN", i);
    }
  }
  if (largest == kInfinity) {
    const auto at = std::find(logits.begin(), logits.end(), kInfinity) - logits.begin();
    return fail(ErrorCode::kNumerical, "logit of token %td: expected a finite number, found +inf",
                at);
  }
  return fail(ErrorCode::kNumerical,
              "logits: expected at least one finite number, found -inf for all %zu tokens",
              logits.size());
}

void keep_top_k_by_heap(std::span<const float> logits, size_t k, std::vector<Candidate>& kept) {
  // The heap's front is the least likely token kept. Ids ascend, so an equal logit never displaces
  // it.
  for (size_t i = 0; i < k; ++i) kept.push_back({static_cast<TokenId>(i), logits[i], 0});
  std::make_heap(kept.begin(), kept.end(), more_likely);
  float least = kept.front().logit;
  for (size_t i = k; i < logits.size(); ++i) {
    if (logits[i] <= least) continue;
    std::pop_heap(kept.begin(), kept.end(), more_likely);
    kept.back() = {static_cast<TokenId>(i), logits[i], 0};
    std::push_heap(kept.begin(), kept.end(), more_likely);
    least = kept.front().logit;
  }
}

}  // namespace

Result<float> largest_logit(std::span<const float> logits) {
  // Independent lanes, because a single running maximum is a chain that no compiler may split.
  constexpr size_t kLanes = 16;
  std::array<float, kLanes> largest;
  largest.fill(-kInfinity);
  std::array<int32_t, kLanes> not_a_number{};
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float logit = logits[i + lane];
      largest[lane] = logit > largest[lane] ? logit : largest[lane];
      not_a_number[lane] |= logit != logit ? 1 : 0;
    }
  }
  for (size_t i = whole; i < logits.size(); ++i) {
    largest[0] = logits[i] > largest[0] ? logits[i] : largest[0];
    not_a_number[0] |= logits[i] != logits[i] ? 1 : 0;
  }
  const float best = *std::max_element(largest.begin(), largest.end());
  const bool any_nan = *std::max_element(not_a_number.begin(), not_a_number.end()) != 0;
  if (any_nan || !std::isfinite(best)) return no_largest(logits, best);
  return best;
}

TokenId first_with_logit(std::span<const float> logits, float largest) {
  const auto found = std::find(logits.begin(), logits.end(), largest);
  CHECK(found != logits.end());
  return static_cast<TokenId>(found - logits.begin());
}

void keep_top_k(std::span<const float> logits, int32_t k, std::vector<Candidate>& kept) {
  CHECK(k >= 1 && static_cast<size_t>(k) < logits.size());
  kept.clear();
  if (k <= kHeapLimit) {
    keep_top_k_by_heap(logits, static_cast<size_t>(k), kept);
  } else {
    for (size_t i = 0; i < logits.size(); ++i) {
      kept.push_back({static_cast<TokenId>(i), logits[i], 0});
    }
    std::nth_element(kept.begin(), kept.begin() + k, kept.end(), more_likely);
    kept.resize(static_cast<size_t>(k));
  }
  std::sort(kept.begin(), kept.end(), more_likely);
}

double set_weights(std::span<Candidate> candidates, float largest, float temperature) {
  double total = 0;
  for (Candidate& candidate : candidates) {
    candidate.weight = std::exp((candidate.logit - largest) / temperature);
    total += static_cast<double>(candidate.weight);
  }
  return total;
}

void keep_nucleus(std::vector<Candidate>& candidates, float top_p, double total) {
  CHECK(!candidates.empty());
  const double wanted = static_cast<double>(top_p) * total;
  // The nucleus is a prefix of the ordered tokens, so it lies within any set of the most likely
  // ones that is heavy enough. Widen that set until it is; only then put it in order.
  size_t heavy = 0;
  for (const float least_weight : {0.05f, 1e-3f, 1e-5f, 0.0f}) {
    const auto end = std::partition(
        candidates.begin(), candidates.end(),
        [&](const Candidate& candidate) { return candidate.weight >= least_weight; });
    heavy = static_cast<size_t>(end - candidates.begin());
    double mass = 0;
    for (size_t i = 0; i < heavy; ++i) mass += static_cast<double>(candidates[i].weight);
    if (heavy > 0 && mass >= wanted) break;
  }
  candidates.resize(heavy);
  std::sort(candidates.begin(), candidates.end(), more_likely);
  double mass = 0;
  size_t count = 0;
  while (count < candidates.size()) {
    mass += static_cast<double>(candidates[count++].weight);
    if (mass >= wanted) break;
  }
  candidates.resize(count);
}

}  // namespace winnow
