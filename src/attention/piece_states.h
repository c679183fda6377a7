// PieceStates: softmax states of pieces of generated tokens' attention, kept until the pieces are
// merged. For attention/ only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_kernels.h"

namespace winnow {

// Keys of one piece: long enough to amortise a task, short enough that one long sequence occupies
// every thread.
inline constexpr int32_t kPieceTokens = 512;
static_assert(kPieceTokens % kPageTokens == 0);

// The states of [num_pieces] pieces, `group` rows each, in memory that the caller owns.
struct PieceStates {
  float* data = nullptr;
  int group = 0;
  int head_dim = 0;

  static size_t size(int64_t num_pieces, int group, int head_dim) {
    return static_cast<size_t>(num_pieces * group * (head_dim + 2));
  }
  AttentionState of_piece(int64_t piece) const {
    float* state = data + piece * group * (head_dim + 2);
    return {state, state + group, state + 2 * group};
  }
  void keep(int64_t piece, const AttentionState& from) const;
  // Joins pieces [begin, end) in ascending order and writes their rows: out is [group, head_dim].
  // One piece alone gives the bits that AttentionKernels::finish gives.
  void merge(int64_t begin, int64_t end, float* out) const;

 private:
  void merge_row(int64_t begin, int64_t end, int row, float* out) const;
};

}  // namespace winnow
