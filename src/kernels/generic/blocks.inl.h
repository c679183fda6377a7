// Block scores, shares and correction, with the rows of a tile in the lanes of vectors: nothing is
// summed across lanes but a block's share. Include inside isa/ files only.
#pragma once

#include "kernels/block_kernels.h"
#include "kernels/generic/exp2.inl.h"

namespace winnow {
namespace {

constexpr float kLargest = 3.4028234663852886e38F;
constexpr int kMaxBlockTokens = 128;

// What a score tile keeps in its scratch. Arrays start on cache lines. Without memory it only tells
// how much it takes.
struct ScoreState {
  ScoreState(std::byte* scratch, int32_t head_dim, int32_t rank) {
    int64_t used = 0;
    const auto take = [&](int64_t size_bytes) {
      std::byte* start = scratch == nullptr ? nullptr : scratch + used;
      used += (size_bytes + 63) / 64 * 64;
      return start;
    };
    q = reinterpret_cast<float*>(take(int64_t{4} * head_dim * kScoreRows));
    coordinates = reinterpret_cast<float*>(take(int64_t{4} * rank * kScoreRows));
    scales = reinterpret_cast<float*>(take(4 * kScoreRows));
    offsets = reinterpret_cast<int32_t*>(take(4 * kScoreRows));
    sketches = take(int64_t{2} * rank * kScoreRows);
    keys = take(int64_t{2} * rank * kMaxBlockTokens);
    bytes = used;
  }

  float* q;             // [head_dim][kScoreRows], scaled; zero in lanes without a row
  float* coordinates;   // [rank][kScoreRows]: q . projection, then in steps of the scale
  float* scales;        // [kScoreRows]
  int32_t* offsets;     // [kScoreRows]: taken from the products with the keys' sketches
  std::byte* sketches;  // packed as the level's products take them
  std::byte* keys;      // a block's sketches, widened
  int64_t bytes;
};

// S is the vector vocabulary. Sketches are a level's integer products:
//   pack(coordinates, rank, packed, offsets)  rounded coordinates [rank][kScoreRows] as integers
//   peaks(state, rank, keys, tokens, out)     per row the largest product with any of the keys
template <class S, class Sketches>
struct Blocks {
  using Vec = typename S::Vec;
  static constexpr int kVecs = kScoreRows / S::kLanes;
  static constexpr float kLog2E = 1.4426950408889634F;

  static int64_t scratch_bytes(int32_t head_dim, int32_t rank) {
    return ScoreState(nullptr, head_dim, rank).bytes;
  }

  static void begin(const ScoreTile& tile) {
    const ScoreState state(tile.scratch, tile.head_dim, tile.rank);
    const float scale = tile.scale * kLog2E;
    for (int32_t row = 0; row < kScoreRows; ++row) {
      const float* q = tile.q + row * tile.row_stride;
      for (int32_t dim = 0; dim < tile.head_dim; ++dim) {
        state.q[dim * kScoreRows + row] = row < tile.rows ? q[dim] * scale : 0.0F;
      }
    }
    if (tile.rank == 0) return;
    for (int i = 0; i < kVecs; ++i) project(tile, state, i * S::kLanes);
    Sketches::pack(state.coordinates, tile.rank, state.sketches, state.offsets);
  }

  static void score(const ScoreTile& tile, const BlockSummaries& blocks, float* mean_logits,
                    float* scores) {
    const ScoreState state(tile.scratch, tile.head_dim, tile.rank);
    int32_t block = 0;
    for (; block + 4 <= blocks.num_blocks; block += 4) {
      dot_means<4>(tile, state, blocks.k_means + int64_t{block} * tile.head_dim,
                   mean_logits + block * kScoreRows);
    }
    for (; block < blocks.num_blocks; ++block) {
      dot_means<1>(tile, state, blocks.k_means + int64_t{block} * tile.head_dim,
                   mean_logits + block * kScoreRows);
    }
    if (tile.rank == 0) return;
    const Vec spread = S::set1(static_cast<float>(__builtin_log2(blocks.block_tokens) / 3));
    for (block = 0; block < blocks.num_blocks; ++block) {
      const uint8_t* keys = blocks.sketches + int64_t{block} * blocks.block_tokens * tile.rank;
      Vec peaks[kVecs];
      Sketches::peaks(state, tile.rank, keys, blocks.block_tokens, peaks);
      const Vec step = S::set1(blocks.sketch_scales[block]);
      for (int i = 0; i < kVecs; ++i) {
        const int64_t lane = block * kScoreRows + i * S::kLanes;
        const Vec unit = S::mul(S::load(state.scales + i * S::kLanes), step);
        S::store(scores + lane,
                 S::add(S::fma(peaks[i], unit, S::load(mean_logits + lane)), spread));
      }
    }
  }

  static void shares(float* scores, int32_t num_blocks, int32_t rows, const ForcedMass& forced,
                     float* shares) {
    float forced_max[kScoreRows] = {};
    float forced_sum[kScoreRows] = {};
    for (int32_t row = 0; row < rows; ++row) {
      forced_max[row] = forced.max[row];
      forced_sum[row] = forced.sum[row];
    }
    Vec inverse[kVecs];
    for (int i = 0; i < kVecs; ++i) {
      const int first = i * S::kLanes;
      const Vec sum = weigh(scores + first, num_blocks, S::load(forced_max + first),
                            S::load(forced_sum + first));
      inverse[i] = S::div(S::set1(1), sum);
    }
    const float per_row = 1 / static_cast<float>(rows);
    for (int32_t block = 0; block < num_blocks; ++block) {
      Vec squares = S::zero();
      for (int i = 0; i < kVecs; ++i) {
        const int first = i * S::kLanes;
        const Vec share = S::mul(S::load(scores + block * kScoreRows + first), inverse[i]);
        // Lanes without a row count nothing, whatever they hold.
        const Vec p = S::select(S::lanes_between(0, rows - first), share, S::zero());
        squares = S::fma(p, p, squares);
      }
      shares[block] = __builtin_sqrtf(S::sum(squares) * per_row);
    }
  }

  static void correct(const BlockCorrection& correction, const CorrectedRows& rows) {
    float max[kScoreRows] = {};
    float sum[kScoreRows] = {};
    float shrink[kScoreRows];
    for (int32_t row = 0; row < rows.rows; ++row) {
      max[row] = rows.max[row * rows.stride];
      sum[row] = rows.sum[row * rows.stride];
    }
    for (int i = 0; i < kVecs; ++i) weigh_means(correction, i * S::kLanes, max, sum, shrink);
    for (int32_t row = 0; row < rows.rows; ++row) {
      rows.max[row * rows.stride] = max[row];
      rows.sum[row * rows.stride] = sum[row];
    }
    for (int32_t row = 0; row < rows.rows; row += kAccRows) {
      for (int32_t dim = 0; dim < rows.head_dim; dim += S::kLanes) {
        add_means(correction, rows, row, dim, shrink);
      }
    }
  }

 private:
  static constexpr int kAccRows = 8;

  // Coordinates of the rows in the lanes from `first`, in steps of 1 / 127 of a row's largest.
  static void project(const ScoreTile& tile, const ScoreState& state, int32_t first) {
    Vec largest = S::zero();
    for (int32_t i = 0; i < tile.rank; ++i) {
      Vec sum = S::zero();
      for (int32_t dim = 0; dim < tile.head_dim; ++dim) {
        const Vec factor = S::set1(tile.projection[int64_t{dim} * tile.rank + i]);
        sum = S::fma(S::load(state.q + int64_t{dim} * kScoreRows + first), factor, sum);
      }
      S::store(state.coordinates + i * kScoreRows + first, sum);
      // at_least lets a NaN through.
      largest = S::at_least(S::at_least(sum, S::sub(S::zero(), sum)), largest);
      largest = S::select(S::less(largest, S::set1(kLargest)), largest, S::set1(kLargest));
    }
    finish_projection(tile, state, first, largest);
  }

  static void finish_projection(const ScoreTile& tile, const ScoreState& state, int32_t first,
                                Vec largest) {
    const auto finite = S::less(largest, S::set1(kLargest));
    const Vec step = S::mul(S::at_least(largest, S::set1(1e-30F)), S::set1(1.0F / 127));
    const Vec inverse = S::div(S::set1(1), step);
    for (int32_t i = 0; i < tile.rank; ++i) {
      float* coordinate = state.coordinates + i * kScoreRows + first;
      const Vec rounded = S::round(S::mul(S::load(coordinate), inverse));
      S::store(coordinate, S::select(finite, rounded, S::zero()));
    }
    S::store(state.scales + first, S::select(finite, step, S::set1(__builtin_nanf(""))));
  }

  template <int Count>
  static void dot_means(const ScoreTile& tile, const ScoreState& state, const float* means,
                        float* logits) {
    Vec sums[Count][kVecs];
    for (auto& sum : sums) {
      for (Vec& lanes : sum) lanes = S::zero();
    }
    for (int32_t dim = 0; dim < tile.head_dim; ++dim) {
      Vec q[kVecs];
#pragma GCC unroll 4
      for (int i = 0; i < kVecs; ++i) q[i] = S::load(state.q + dim * kScoreRows + i * S::kLanes);
#pragma GCC unroll 4
      for (int block = 0; block < Count; ++block) {
        const Vec mean = S::set1(means[int64_t{block} * tile.head_dim + dim]);
#pragma GCC unroll 4
        for (int i = 0; i < kVecs; ++i) sums[block][i] = S::fma(q[i], mean, sums[block][i]);
      }
    }
    for (int block = 0; block < Count; ++block) {
      for (int i = 0; i < kVecs; ++i) {
        S::store(logits + block * kScoreRows + i * S::kLanes, sums[block][i]);
      }
    }
  }

  // A reference that exponents can be taken from: any finite one where every logit is minus
  // infinity.
  static Vec reference_for(Vec max) {
    return S::select(S::less(max, S::set1(-kLargest)), S::zero(), max);
  }

  // Turns a vector of rows' scores into weights and returns their sum with the forced mass.
  static Vec weigh(float* scores, int32_t num_blocks, Vec forced_max, Vec forced_sum) {
    Vec max = forced_max;
    for (int32_t block = 0; block < num_blocks; ++block) {
      max = S::max(S::load(scores + block * kScoreRows), max);
    }
    const Vec reference = reference_for(max);
    Vec sum = S::mul(forced_sum, exp2_weight<S>(S::sub(forced_max, reference)));
    for (int32_t block = 0; block < num_blocks; ++block) {
      const Vec weight = exp2_weight<S>(S::sub(S::load(scores + block * kScoreRows), reference));
      S::store(scores + block * kScoreRows, weight);
      sum = S::add(sum, weight);
    }
    return sum;
  }

  static Vec corrected_logit(const BlockCorrection& correction, int32_t i, int32_t first) {
    const float* logits = correction.mean_logits + int64_t{correction.blocks[i]} * kScoreRows;
    return S::add(S::load(logits + first), S::set1(correction.log2_tokens));
  }

  static void weigh_means(const BlockCorrection& correction, int32_t first, float* max, float* sum,
                          float* shrink) {
    const Vec old_max = S::load(max + first);
    Vec new_max = old_max;
    for (int32_t i = 0; i < correction.num_blocks; ++i) {
      new_max = S::max(corrected_logit(correction, i, first), new_max);
    }
    const Vec reference = reference_for(new_max);
    const Vec factor = exp2_weight<S>(S::sub(old_max, reference));
    Vec total = S::mul(S::load(sum + first), factor);
    for (int32_t i = 0; i < correction.num_blocks; ++i) {
      const Vec weight = exp2_weight<S>(S::sub(corrected_logit(correction, i, first), reference));
      S::store(correction.weights + int64_t{i} * kScoreRows + first, weight);
      total = S::add(total, weight);
    }
    S::store(max + first, new_max);
    S::store(sum + first, total);
    S::store(shrink + first, factor);
  }

  // Rows [first, first + kAccRows) as far as there are so many, one vector of dims.
  static void add_means(const BlockCorrection& correction, const CorrectedRows& rows, int32_t first,
                        int32_t dim, const float* shrink) {
    const int32_t count = rows.rows - first < kAccRows ? rows.rows - first : kAccRows;
    float* acc = rows.acc + first * rows.stride * rows.head_dim + dim;
    const int64_t acc_stride = rows.stride * rows.head_dim;
    Vec sums[kAccRows];
#pragma GCC unroll 8
    for (int row = 0; row < kAccRows; ++row) {
      sums[row] = row < count
                      ? S::mul(S::load(acc + row * acc_stride), S::set1(shrink[first + row]))
                      : S::zero();
    }
    for (int32_t i = 0; i < correction.num_blocks; ++i) {
      const Vec value = S::load(correction.v_means[i] + dim);
      const float* weights = correction.weights + int64_t{i} * kScoreRows + first;
#pragma GCC unroll 8
      for (int row = 0; row < kAccRows; ++row) {
        sums[row] = S::fma(S::set1(weights[row]), value, sums[row]);
      }
    }
#pragma GCC unroll 8
    for (int row = 0; row < kAccRows; ++row) {
      if (row < count) S::store(acc + row * acc_stride, sums[row]);
    }
  }
};

template <class S, class Sketches>
constexpr BlockKernels block_kernels_of() {
  using Level = Blocks<S, Sketches>;
  return {Level::scratch_bytes, Level::begin, Level::score, Level::shares, Level::correct};
}

}  // namespace
}  // namespace winnow
