// Hands blocks and steps to an attention kernel many at a time.
#pragma once

#include <cstdint>

#include "kernels/attention_kernels.h"

namespace winnow {

// Pages whose K and V stay in the second-level cache while one strip of rows after the other goes
// through them.
constexpr int32_t pages_at_once(int32_t head_dim) {
  constexpr int32_t kVisitBytes = 512 * 1024;
  constexpr int32_t kMaxPages = 16;
  const int32_t pages = kVisitBytes / (4 * kPageTokens * head_dim);
  return pages < kMaxPages ? pages : kMaxPages;
}
inline constexpr int32_t kMostPagesAtOnce = pages_at_once(16);

// Blocks of a tile. Visits what is left at its end.
class BlockVisits {
 public:
  BlockVisits(const AttentionKernels& kernels, const AttentionTile& tile)
      : kernels_(kernels), tile_(tile), at_once_(pages_at_once(tile.head_dim)) {}
  ~BlockVisits() { flush(); }
  BlockVisits(const BlockVisits&) = delete;
  BlockVisits& operator=(const BlockVisits&) = delete;

  void add(const AttentionBlock& block) {
    blocks_[num_blocks_++] = block;
    if (num_blocks_ == at_once_) flush();
  }

 private:
  void flush() {
    if (num_blocks_ > 0) kernels_.visit(tile_, blocks_, num_blocks_);
    num_blocks_ = 0;
  }

  const AttentionKernels& kernels_;
  const AttentionTile& tile_;
  int32_t at_once_;
  AttentionBlock blocks_[kMostPagesAtOnce];
  int32_t num_blocks_ = 0;
};

// Steps that every row of a tile sees whole, likewise.
class StepVisits {
 public:
  StepVisits(const AttentionKernels& kernels, const AttentionTile& tile)
      : kernels_(kernels), tile_(tile), at_once_(pages_at_once(tile.head_dim) * kMaxSteps) {}
  ~StepVisits() { flush(); }
  StepVisits(const StepVisits&) = delete;
  StepVisits& operator=(const StepVisits&) = delete;

  void add(const AttentionStep& step) {
    steps_[num_steps_++] = step;
    if (num_steps_ == at_once_) flush();
  }

 private:
  void flush() {
    if (num_steps_ > 0) kernels_.visit_steps(tile_, steps_, num_steps_);
    num_steps_ = 0;
  }

  const AttentionKernels& kernels_;
  const AttentionTile& tile_;
  int32_t at_once_;
  AttentionStep steps_[kMostPagesAtOnce * kMaxSteps];
  int32_t num_steps_ = 0;
};

}  // namespace winnow
