// Divergence: how far one run's next-token distributions lie from another's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace winnow {

// KL(reference || other) in nats of the distributions that two rows of logits stand for. Requires
// as many of one as of the other.
double kl_divergence(std::span<const float> reference, std::span<const float> other);

struct DivergenceReport {
  int64_t num_positions = 0;
  double mean_kl = 0;  // of KL(reference || other), in nats; NaN if a logit is
  double p99_kl = 0;
  double top1_agreement = 0;        // share of positions with the same likeliest token
  double reference_perplexity = 0;  // of the text's own next tokens
  double other_perplexity = 0;
};

// Collects positions [begin, end) of a text; every position before the last has a next token.
class Divergence {
 public:
  Divergence(std::span<const TokenId> ids, int64_t begin, int64_t end);

  // Once for each position, from any thread.
  void add(const LogitPair& pair);
  DivergenceReport report() const;

 private:
  struct Position {
    double kl = 0;
    double reference_loss = 0;
    double other_loss = 0;
    bool same_top1 = false;
  };
  std::span<const TokenId> ids_;
  int64_t begin_;
  std::vector<Position> positions_;
};

}  // namespace winnow
