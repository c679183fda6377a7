// Hands blocks and steps to an attention kernel many at a time.
#pragma once

#include <cstdint>

#include "kernels/attention_kernels.h"

namespace winnow {

// Blocks of a tile, in visits of as many pages as the second-level cache holds while one strip of
// rows after the other goes through them. Visits what is left at its end.
class BlockVisits {
 public:
  BlockVisits(const AttentionKernels& kernels, const AttentionTile& tile)
      : kernels_(kernels), tile_(tile), at_once_(blocks_at_once(tile.head_dim)) {}
  ~BlockVisits() { flush(); }
  BlockVisits(const BlockVisits&) = delete;
  BlockVisits& operator=(const BlockVisits&) = delete;

  void add(const AttentionBlock& block) {
    blocks_[num_blocks_++] = block;
    if (num_blocks_ == at_once_) flush();
  }

 private:
  static constexpr int32_t kMaxBlocks = 16;
  static constexpr int32_t kVisitBytes = 512 * 1024;

  static constexpr int32_t blocks_at_once(int32_t head_dim) {
    // K and V in 16 bits.
    const int32_t blocks = kVisitBytes / (4 * kPageTokens * head_dim);
    return blocks < kMaxBlocks ? blocks : kMaxBlocks;
  }

  void flush() {
    if (num_blocks_ > 0) kernels_.visit(tile_, blocks_, num_blocks_);
    num_blocks_ = 0;
  }

  const AttentionKernels& kernels_;
  const AttentionTile& tile_;
  int32_t at_once_;
  AttentionBlock blocks_[kMaxBlocks];
  int32_t num_blocks_ = 0;
};

// Steps that every row of a tile sees whole, likewise.
class StepVisits {
 public:
  StepVisits(const AttentionKernels& kernels, const AttentionTile& tile)
      : kernels_(kernels), tile_(tile) {}
  ~StepVisits() { flush(); }
  StepVisits(const StepVisits&) = delete;
  StepVisits& operator=(const StepVisits&) = delete;

  void add(const AttentionStep& step) {
    steps_[num_steps_++] = step;
    if (num_steps_ == kAtOnce) flush();
  }

 private:
  // A visit of its own costs 4 steps a tenth of their time.
  static constexpr int32_t kAtOnce = 16 * kMaxSteps;

  void flush() {
    if (num_steps_ > 0) kernels_.visit_steps(tile_, steps_, num_steps_);
    num_steps_ = 0;
  }

  const AttentionKernels& kernels_;
  const AttentionTile& tile_;
  AttentionStep steps_[kAtOnce];
  int32_t num_steps_ = 0;
};

}  // namespace winnow
