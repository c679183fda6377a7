// What a tile of rows keeps for attention on AMX tiles, in strips of 16 rows. For isa/ files only.
#pragma once

#include "kernels/generic/attention_state.inl.h"
#include "kernels/isa/attention_tiles.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

// Logits of one strip and step, or their weights.
constexpr int kStepLogits = kStripRows * kStepTokens;
// Weights of one strip and visit.
constexpr int kStripWeights = kMaxSteps * kStepLogits;
// Logits of one block of products: two strips by one step, or one strip by two.
constexpr int kBlockLogits = 2 * kStepLogits;

// The tile's scratch. Rows come in whole strips.
struct StripState {
  StripState(std::byte* scratch, int32_t num_rows, int32_t dims)
      : rows(num_rows), strips(divide_up(num_rows, kStripRows)), head_dim(dims) {
    const int64_t room = int64_t{strips} * kStripRows;
    ScratchArrays arrays(scratch);
    const auto take = [&](int64_t floats) { return arrays.take(floats); };
    max = take(room);
    sum = take(room);
    lane_sums = take(room * kSumLanes);
    acc = take(room * dims);
    q = reinterpret_cast<uint16_t*>(take(room * dims / 2));
    logits = take(2 * kBlockLogits);
    weights = reinterpret_cast<uint16_t*>(take(kStripWeights));
    masked_v = reinterpret_cast<uint16_t*>(take(kVGroupUnits));
    bytes = arrays.bytes();
  }

  static constexpr int kSumLanes = 16;

  // Rows of a strip that are the tile's.
  int32_t rows_of(int32_t strip) const { return smaller(kStripRows, rows - strip * kStripRows); }
  uint16_t* weights_of(int32_t strip, int32_t step) const {
    return weights + strip * kStripWeights + step * kStepLogits;
  }

  int32_t rows;
  int32_t strips;
  int32_t head_dim;
  float* max;          // [rows]: the references of the weights
  float* sum;          // [rows]
  float* lane_sums;    // [rows][kSumLanes]: what is to be added to sum
  float* acc;          // [rows][head_dim]
  uint16_t* q;         // [strip][head_dim / 32][16 rows][32 dims], and what is left of head_dim
  float* logits;       // [2 blocks][2 halves][2 tiles][16 rows][16 tokens]
  uint16_t* weights;   // [2 strips][step][16 rows][32 tokens] bf16
  uint16_t* masked_v;  // V of a group of dims as one row may see it
  int64_t bytes;
};

// One or two strips, and the steps of which their rows see any.
struct StripSteps {
  int32_t first_strip;
  const AttentionStep* steps;
  int32_t num_steps;
  const AttentionBlock* block;  // whose steps they are, where some row does not see all of them
  int32_t first_token;          // of the steps, in the block's page

  TokenRange tokens() const { return {first_token, first_token + num_steps * kStepTokens}; }
};

// Adds the weights of a unit to the sums of its rows, two rows at a time. It is the rounded weights
// that are summed, as V is.
class RowSums {
 public:
  RowSums(const StripState& state, const StripSteps& unit, int32_t strips)
      : state_(state), num_steps_(unit.num_steps) {
    const int32_t first = unit.first_strip * kStripRows;
    rows_ = smaller(strips * kStripRows, state.rows - first);
    sums_ = state.lane_sums + int64_t{first} * kLanes;
  }

  [[gnu::always_inline]] inline void add_two() {
    if (row_ >= rows_) return;
    const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80));
    const uint16_t* weights =
        state_.weights_of(row_ / kStripRows, 0) + row_ % kStripRows * kStepTokens;
    float* sums = sums_ + int64_t{row_} * kLanes;
    __m512 first = _mm512_load_ps(sums);
    __m512 second = _mm512_load_ps(sums + kLanes);
    for (int32_t step = 0; step < num_steps_; ++step, weights += kStepLogits) {
      first = _mm512_dpbf16_ps(first, row_of(weights), ones);
      second = _mm512_dpbf16_ps(second, row_of(weights + kStepTokens), ones);
    }
    _mm512_store_ps(sums, first);
    _mm512_store_ps(sums + kLanes, second);
    row_ += 2;
  }
  void finish() {
    while (row_ < rows_) add_two();
  }

 private:
  static constexpr int kLanes = StripState::kSumLanes;

  static __m512bh row_of(const uint16_t* weights) {
    return reinterpret_cast<__m512bh>(_mm512_load_si512(weights));
  }

  const StripState& state_;
  int32_t num_steps_;
  int32_t rows_;
  int32_t row_ = 0;
  float* sums_;  // [rows][kLanes]
};

}  // namespace
}  // namespace winnow
