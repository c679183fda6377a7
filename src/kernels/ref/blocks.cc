// The specification of the block kernels: one row after the other, one block after the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "kernels/block_kernels.h"

namespace winnow {
namespace {

// The tile's scratch: the scale of each row's sketch, then the sketches, [kScoreRows][rank].
struct QuerySketches {
  explicit QuerySketches(const ScoreTile& tile)
      : scales(reinterpret_cast<float*>(tile.scratch)),
        values(reinterpret_cast<int8_t*>(scales + kScoreRows)) {}

  float* scales;
  int8_t* values;
};

int64_t scratch_bytes(int32_t, int32_t rank) {
  return kScoreRows * (static_cast<int64_t>(sizeof(float)) + rank);
}

void begin(const ScoreTile& tile) {
  const QuerySketches sketches(tile);
  for (int row = 0; row < tile.rows; ++row) {
    const float* q = tile.q + row * tile.row_stride;
    float coordinates[64] = {};
    float largest = 0;
    for (int i = 0; i < tile.rank; ++i) {
      for (int dim = 0; dim < tile.head_dim; ++dim) {
        coordinates[i] += q[dim] * tile.projection[dim * tile.rank + i];
      }
      // Written so that a NaN stays.
      largest = std::abs(coordinates[i]) <= largest ? largest : std::abs(coordinates[i]);
    }
    const bool finite = largest <= std::numeric_limits<float>::max();
    const float step = std::max(largest, 1e-30F) / 127;
    int8_t* values = sketches.values + row * tile.rank;
    for (int i = 0; i < tile.rank; ++i) {
      values[i] = finite ? static_cast<int8_t>(std::nearbyint(coordinates[i] / step)) : int8_t{0};
    }
    sketches.scales[row] = finite ? step * tile.scale * std::numbers::log2e_v<float>
                                  : std::numeric_limits<float>::quiet_NaN();
  }
}

float mean_logit(const ScoreTile& tile, int row, const float* k_mean) {
  const float* q = tile.q + row * tile.row_stride;
  float dot = 0;
  for (int dim = 0; dim < tile.head_dim; ++dim) dot += q[dim] * k_mean[dim];
  return dot * tile.scale * std::numbers::log2e_v<float>;
}

// The largest product of a row's sketch with those of a block's keys.
int32_t peak(const ScoreTile& tile, int row, const BlockSummaries& blocks, int block) {
  const int8_t* q = QuerySketches(tile).values + row * tile.rank;
  int32_t largest = std::numeric_limits<int32_t>::min();
  for (int token = block * blocks.block_tokens; token < (block + 1) * blocks.block_tokens;
       ++token) {
    const uint8_t* k = blocks.sketches + int64_t{token} * tile.rank;
    int32_t dot = 0;
    for (int i = 0; i < tile.rank; ++i) dot += q[i] * (k[i] - 128);
    largest = std::max(largest, dot);
  }
  return largest;
}

void score(const ScoreTile& tile, const BlockSummaries& blocks, float* mean_logits, float* scores) {
  const float spread = std::log2(static_cast<float>(blocks.block_tokens)) / 3;
  for (int block = 0; block < blocks.num_blocks; ++block) {
    for (int row = 0; row < kScoreRows; ++row) {
      const int idx = block * kScoreRows + row;
      mean_logits[idx] = 0;
      if (scores != nullptr) scores[idx] = 0;
      if (row >= tile.rows) continue;
      mean_logits[idx] = mean_logit(tile, row, blocks.k_means + int64_t{block} * tile.head_dim);
      if (scores == nullptr || tile.rank == 0) continue;
      const float unit = QuerySketches(tile).scales[row] * blocks.sketch_scales[block];
      scores[idx] =
          mean_logits[idx] + static_cast<float>(peak(tile, row, blocks, block)) * unit + spread;
    }
  }
}

void shares(float* scores, int32_t num_blocks, int32_t rows, const ForcedMass& forced,
            float* shares) {
  std::fill_n(shares, num_blocks, 0.0F);
  for (int row = 0; row < rows; ++row) {
    float max = forced.max[row];
    for (int block = 0; block < num_blocks; ++block) {
      max = std::max(max, scores[block * kScoreRows + row]);
    }
    // While every logit is minus infinity, any finite reference will do.
    if (max == -std::numeric_limits<float>::infinity()) max = 0;
    float sum = forced.sum[row] * std::exp2(forced.max[row] - max);
    for (int block = 0; block < num_blocks; ++block) {
      sum += std::exp2(scores[block * kScoreRows + row] - max);
    }
    for (int block = 0; block < num_blocks; ++block) {
      const float p = std::exp2(scores[block * kScoreRows + row] - max) / sum;
      shares[block] += p * p;
    }
  }
  for (int block = 0; block < num_blocks; ++block) {
    shares[block] = std::sqrt(shares[block] / static_cast<float>(rows));
  }
}

void correct(const BlockCorrection& correction, const CorrectedRows& rows) {
  for (int row = 0; row < rows.rows; ++row) {
    float& max = rows.max[row * rows.stride];
    float& sum = rows.sum[row * rows.stride];
    float* acc = rows.acc + row * rows.stride * rows.head_dim;
    const auto logit = [&](int i) {
      return correction.mean_logits[correction.blocks[i] * kScoreRows + row] +
             correction.log2_tokens;
    };
    float new_max = max;
    for (int i = 0; i < correction.num_blocks; ++i) new_max = std::max(new_max, logit(i));
    const float reference = new_max == -std::numeric_limits<float>::infinity() ? 0 : new_max;
    const float shrink = std::exp2(max - reference);
    sum *= shrink;
    for (int dim = 0; dim < rows.head_dim; ++dim) acc[dim] *= shrink;
    for (int i = 0; i < correction.num_blocks; ++i) {
      const float weight = std::exp2(logit(i) - reference);
      sum += weight;
      for (int dim = 0; dim < rows.head_dim; ++dim) acc[dim] += weight * correction.v_means[i][dim];
    }
    max = new_max;
  }
}

constexpr BlockKernels kKernels = {scratch_bytes, begin, score, shares, correct};

}  // namespace

const BlockKernels& block_kernels_scalar() { return kKernels; }

}  // namespace winnow
