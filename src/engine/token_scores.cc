#include "engine/token_scores.h"

#include <algorithm>
#include <cmath>

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
  ScoredToken scored{
      .token = token, .logprob = static_cast<float>(logprob(token)), .rank = rank(token)};
  for (const TokenId id : best_tokens(num_top)) {
    scored.top.push_back({id, static_cast<float>(logprob(id))});
  }
  return scored;
}

int32_t RowSoftmax::rank(TokenId token) const {
  const auto own = logits_.begin() + token;
  const auto before =
      std::count_if(logits_.begin(), own, [&](float other) { return other >= *own; });
  const auto behind = std::count_if(own, logits_.end(), [&](float other) { return other > *own; });
  return static_cast<int32_t>(1 + before + behind);
}

// One pass: after the first few, hardly a token is better than the worst of those kept.
std::vector<TokenId> RowSoftmax::best_tokens(int32_t count) const {
  std::vector<TokenId> best;
  if (count <= 0) return best;
  const auto logit = [this](TokenId id) { return logits_[static_cast<size_t>(id)]; };
  for (TokenId id = 0; id < std::ssize(logits_); ++id) {
    if (std::ssize(best) == count) {
      if (!(logit(id) > logit(best.back()))) continue;
      best.pop_back();
    }
    const auto worse = std::find_if(best.begin(), best.end(),
                                    [&](TokenId other) { return logit(id) > logit(other); });
    best.insert(worse, id);
  }
  return best;
}

}  // namespace winnow
