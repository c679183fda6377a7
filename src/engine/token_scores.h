// Log-probabilities from a row of logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"

namespace winnow {

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0;
};

// A token and what the model thought of it: log-probabilities of the plain softmax, before
// penalties, temperature and filters.
struct ScoredToken {
  TokenId token = 0;
  float logprob = 0;
  int32_t rank = 0;                    // from 1, in the order of `top`; 0 = not scored
  std::vector<TokenLogprob> top = {};  // the most likely tokens, best first; ties: lowest id first
};

// The softmax of a row, as what log-probabilities are taken from: the same number for the same
// token, whichever way it is asked for. NaN in a row makes all of them NaN.
class RowSoftmax {
 public:
  explicit RowSoftmax(std::span<const float> logits);

  TokenId best() const { return best_; }
  double logprob(TokenId token) const {
    return static_cast<double>(logits_[static_cast<size_t>(token)] - largest_) - log_sum_;
  }
  ScoredToken score(TokenId token, int32_t num_top) const;

 private:
  int32_t rank(TokenId token) const;
  std::vector<TokenId> best_tokens(int32_t count) const;

  std::span<const float> logits_;
  TokenId best_ = 0;
  float largest_ = 0;
  double log_sum_ = 0;
};

}  // namespace winnow
