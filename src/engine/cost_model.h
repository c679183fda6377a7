// Cost of prompt tokens by position, for the remaining-time estimate: linear layers cost the same
// for every token, attention grows with the number of tokens a token sees.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace winnow {

class PrefillCost {
 public:
  explicit PrefillCost(const ModelConfig& config);

  // Multiply-adds of the tokens at [begin, end), of which full attention computes this share.
  double of(int64_t begin, int64_t end, double attention_share = 1) const;
  // How long the tokens at [done, end) will take, since those at [begin, done) took `elapsed_s` and
  // full attention computed this share of them. 0 before the first is done.
  double eta_s(double elapsed_s, int64_t begin, int64_t done, int64_t end,
               double attention_share) const;

 private:
  struct Attention {
    double per_pair = 0;  // of one token and one token it sees
    int64_t window = 0;   // 0 = all
  };
  double per_token_ = 0;  // linear layers
  std::vector<Attention> attention_;
};

}  // namespace winnow
