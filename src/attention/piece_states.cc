#include "attention/piece_states.h"

#include <algorithm>
#include <cmath>

namespace winnow {

void PieceStates::keep(int64_t piece, const AttentionState& from) const {
  const AttentionState to = of_piece(piece);
  std::copy_n(from.max, group, to.max);
  std::copy_n(from.sum, group, to.sum);
  std::copy_n(from.acc, int64_t{group} * head_dim, to.acc);
}

void PieceStates::merge(int64_t begin, int64_t end, float* out) const {
  for (int row = 0; row < group; ++row) merge_row(begin, end, row, out + int64_t{row} * head_dim);
}

void PieceStates::merge_row(int64_t begin, int64_t end, int row, float* out) const {
  float max = of_piece(begin).max[row];
  for (int64_t i = begin; i < end; ++i) max = std::max(max, of_piece(i).max[row]);
  float sum = 0;
  std::fill_n(out, head_dim, 0.0F);
  for (int64_t i = begin; i < end; ++i) {
    const AttentionState piece = of_piece(i);
    const float weight = std::exp2(piece.max[row] - max);
    const float* acc = piece.acc + int64_t{row} * head_dim;
    sum += piece.sum[row] * weight;
    for (int dim = 0; dim < head_dim; ++dim) out[dim] += acc[dim] * weight;
  }
  const float inverse = 1 / sum;
  for (int dim = 0; dim < head_dim; ++dim) out[dim] *= inverse;
}

}  // namespace winnow
