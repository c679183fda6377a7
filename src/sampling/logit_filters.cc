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

double mass_of(std::span<const Candidate> candidates) {
  double mass = 0;
  for (const Candidate& candidate : candidates) mass += static_cast<double>(candidate.weight);
  return mass;
}

// Moves the most likely candidates to the front until they weigh at least `wanted`, and counts
// them. Most of a large vocabulary weighs next to nothing, so this leaves little to put in order.
size_t count_heavy(std::span<Candidate> candidates, double wanted) {
  for (const float least_weight : {1e-2f, 1e-4f}) {
    const auto end = std::partition(
        candidates.begin(), candidates.end(),
        [&](const Candidate& candidate) { return candidate.weight >= least_weight; });
    const auto heavy = static_cast<size_t>(end - candidates.begin());
    if (mass_of(candidates.first(heavy)) >= wanted) return heavy;
  }
  return candidates.size();
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
  double wanted = static_cast<double>(top_p) * total;
  candidates.resize(count_heavy(candidates, wanted));
  // Where the nucleus ends, by halving: [0, begin) lies inside it and lacks `wanted`, and the end
  // is in [begin, end).
  size_t begin = 0;
  size_t end = candidates.size();
  constexpr size_t kSortable = 32;
  while (end - begin > kSortable) {
    const size_t middle = begin + (end - begin) / 2;
    std::nth_element(candidates.begin() + begin, candidates.begin() + middle,
                     candidates.begin() + end, more_likely);
    const double mass = mass_of({candidates.data() + begin, middle - begin});
    if (mass >= wanted) {
      end = middle;
    } else {
      wanted -= mass;
      begin = middle;
    }
  }
  std::sort(candidates.begin() + begin, candidates.begin() + end, more_likely);
  double mass = 0;
  while (begin < end) {
    mass += static_cast<double>(candidates[begin++].weight);
    if (mass >= wanted) break;
  }
  candidates.resize(begin);
}

}  // namespace winnow
