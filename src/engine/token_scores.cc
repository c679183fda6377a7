#include "engine/token_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace winnow {

RowSoftmax::RowSoftmax(std::span<const float> logits) : logits_(logits) {
  const auto top = std::max_element(logits.begin(), logits.end());
  best_ = static_cast<TokenId>(top - logits.begin());
  largest_ = *top;
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - largest_));
  log_sum_ = std::log(sum);
}

ScoredToken RowSoftmax::score(TokenId token, int32_t num_top) const {
  ScoredToken scored{.token = token, .logprob = static_cast<float>(logprob(token))};
  if (num_top <= 0) return scored;
  std::vector<TokenId> ids(logits_.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(num_top, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](TokenId a, TokenId b) {
    const float logit_a = logits_[static_cast<size_t>(a)];
    const float logit_b = logits_[static_cast<size_t>(b)];
    return logit_a != logit_b ? logit_a > logit_b : a < b;
  });
  for (auto id = ids.begin(); id != end; ++id) {
    scored.top.push_back({*id, static_cast<float>(logprob(*id))});
  }
  return scored;
}

}  // namespace winnow
