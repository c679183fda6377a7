// What the vector units do between the products of attention on AMX tiles, a few rows at a time:
// logits become softmax weights, and weights are summed up. For isa/ files only.
#pragma once

#include "kernels/isa/attention_strips.h"
#include "kernels/isa/attention_weights.h"
#include "kernels/isa/bf16_avx512.h"

namespace winnow {
namespace {

// A new reference stands above the largest logit by so much, so that it seldom moves again: the
// accumulator is scaled only where a later logit comes out at twice the reference's weight.
constexpr float kHeadroom = 7;

// The weights of kStrips strips in the steps of one page. A round of logits has two halves of one
// strip and step each: two strips in one step, or one strip in two.
template <int kStrips>
class Weigher {
 public:
  // Steps of a round.
  static constexpr int kSteps = 2 / kStrips;

  Weigher(const AttentionTile& tile, const StripState& state, const StripSteps& unit)
      : tile_(tile), state_(state), unit_(unit) {
    for (int strip = 0; strip < kStrips; ++strip) {
      const float* max = state.max + (unit.first_strip + strip) * kStripRows;
      _mm512_store_ps(origins_ + strip * kStripRows,
                      SoftmaxWeights::origin_of(_mm512_load_ps(max)));
    }
  }

  // Where the round of `step` has its logits; those of the round before stay.
  float* logits_of(int32_t step) const { return state_.logits + step / kSteps % 2 * kRoundLogits; }

  // The logits of the round of `step` are in their place: the next rows are theirs.
  void begin(int32_t step) {
    step_ = step;
    row_ = 0;
    bits_ = _mm512_setzero_si512();
    for (int half = 0; half < 2; ++half) rows_[half] = rows_in(half);
    if (unit_.block == nullptr && tile_.soft_cap <= 0) return;
    for (int half = 0; half < 2; ++half) prepare_logits(half);
  }

  template <int kRows>
  [[gnu::always_inline]] inline void weigh_rows() {
    static_assert(kRows % 2 == 0 && kStripRows % kRows == 0);
    if (row_ >= 2 * kStripRows) return;
    const int half = row_ / kStripRows;
    const int32_t row = row_ % kStripRows;
    row_ += kRows;
    if (row >= rows_[half]) return;
    const float* from = row_logits(half, row);
    const float* origins = origins_ + strip_of(half) * kStripRows + row;
    uint16_t* to = row_weights(half, row);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const float* logits = from + i * 16;
      _mm512_store_si512(
          to + i * kStepTokens,
          SoftmaxWeights::of(logits, logits + kSumTile, _mm512_set1_ps(origins[i]), bits_));
    }
  }

  // Weighs the rows that are left; false if references may have to move.
  bool finish_rows() {
    while (row_ < 2 * kStripRows) weigh_rows<2>();
    return !SoftmaxWeights::may_be_unfit(bits_);
  }

  // Moves references that are too low, or that there are none of, and weighs their rows again.
  // Scales the accumulator in memory: none of it may be in tile registers.
  void move_references() {
    for (int strip = 0; strip < kStrips; ++strip) {
      for (int32_t row = 0; row < state_.rows_of(unit_.first_strip + strip); ++row) {
        bool moved = false;
        for (int half = strip; half < strip + kSteps; ++half) {
          if (step_of(half) < unit_.num_steps) moved = weigh_again(half, row, moved);
        }
      }
    }
  }

 private:
  static int strip_of(int half) { return kStrips == 2 ? half : 0; }
  int32_t step_of(int half) const { return kStrips == 2 ? step_ : step_ + half; }
  int32_t rows_in(int half) const {
    return step_of(half) < unit_.num_steps ? state_.rows_of(unit_.first_strip + strip_of(half)) : 0;
  }
  float* row_logits(int half, int32_t row) const {
    return logits_of(step_) + half * kStepLogits + row * 16;
  }
  uint16_t* row_weights(int half, int32_t row) const {
    return state_.weights_of(strip_of(half), step_of(half)) + row * kStepTokens;
  }

  // Caps the logits and hides those of unseen tokens.
  void prepare_logits(int half) {
    const int32_t first_row = (unit_.first_strip + strip_of(half)) * kStripRows;
    const int32_t token = unit_.first_token + step_of(half) * kStepTokens;
    for (int32_t row = 0; row < rows_[half]; ++row) {
      TokenRange seen{token, token + kStepTokens};
      if (unit_.block != nullptr) seen = seen_by(tile_, *unit_.block, first_row + row);
      for (int32_t tile = 0; tile < 2; ++tile) {
        float* at = row_logits(half, row) + tile * kSumTile;
        __m512 logit = _mm512_load_ps(at);
        if (tile_.soft_cap > 0) {
          const float cap = tile_.soft_cap * kLog2E * kLogitUnit;
          logit = _mm512_mul_ps(tanh<Avx512>(logit), _mm512_set1_ps(cap));
        }
        const int32_t begin = token + tile * 16;
        const auto lanes = Avx512::lanes_between(seen.begin - begin, seen.end - begin);
        _mm512_store_ps(at, Avx512::select(lanes, logit, _mm512_set1_ps(kNoLogit)));
      }
    }
  }

  // Weighs a row of a half again where its weights are not right: some logit is unfit, or the
  // reference moved after they were made. Whether the reference has moved.
  bool weigh_again(int half, int32_t row, bool moved) {
    const float* logits = row_logits(half, row);
    float& origin = origins_[strip_of(half) * kStripRows + row];
    bool unfit = any_unfit(logits, origin);
    if (!unfit && !moved) return false;
    // In this order NaN is passed over; its weight is NaN anyway.
    __m512 largest = _mm512_max_ps(_mm512_load_ps(logits), _mm512_set1_ps(kNoLogit));
    largest = _mm512_max_ps(_mm512_load_ps(logits + kSumTile), largest);
    const float logit = _mm512_reduce_max_ps(largest) / kLogitUnit;
    if (unfit && logit > max_of(half, row)) {
      move_reference(half, row, __builtin_ceilf(logit) + kHeadroom);
      origin = Avx512::first(SoftmaxWeights::origin_of(_mm512_set1_ps(max_of(half, row))));
      unfit = any_unfit(logits, origin);
      moved = true;
    }
    uint16_t* weights = row_weights(half, row);
    if (unfit) {
      weigh_exactly(logits, max_of(half, row), weights);
    } else {
      _mm512_store_si512(
          weights, SoftmaxWeights::of(logits, logits + kSumTile, _mm512_set1_ps(origin), bits_));
    }
    return moved;
  }

  static bool any_unfit(const float* logits, float origin) {
    const __m512 origins = _mm512_set1_ps(origin);
    return SoftmaxWeights::any_unfit(logits, origins) ||
           SoftmaxWeights::any_unfit(logits + kSumTile, origins);
  }

  int32_t tile_row(int half, int32_t row) const {
    return (unit_.first_strip + strip_of(half)) * kStripRows + row;
  }
  float& max_of(int half, int32_t row) const { return state_.max[tile_row(half, row)]; }

  void move_reference(int half, int32_t row, float reference) {
    const int64_t at = tile_row(half, row);
    const __m512 factor = exp2_weight<Avx512>(_mm512_set1_ps(state_.max[at] - reference));
    const auto scale = [&](float* numbers) {
      _mm512_store_ps(numbers, _mm512_mul_ps(_mm512_load_ps(numbers), factor));
    };
    for (int32_t i = 0; i < state_.head_dim; i += 16) scale(state_.acc + at * state_.head_dim + i);
    scale(state_.lane_sums + at * StripState::kSumLanes);
    state_.sum[at] *= Avx512::first(factor);
    state_.max[at] = reference;
    for (int32_t step = 0; step < step_of(half); ++step) {
      scale_weights(state_.weights_of(strip_of(half), step) + row * kStepTokens, factor);
    }
  }

  static void scale_weights(uint16_t* weights, __m512 factor) {
    for (int32_t i = 0; i < kStepTokens; i += 16) {
      const auto* bits = reinterpret_cast<const __m256i*>(weights + i);
      const __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256(bits)), 16);
      const __m512 weight = _mm512_mul_ps(_mm512_castsi512_ps(wide), factor);
      Bf16Operands::store_weights(reinterpret_cast<float*>(weights), i, weight);
    }
  }

  // For any logits and reference, those that are not finite included.
  static void weigh_exactly(const float* logits, float max, uint16_t* weights) {
    // While every logit is minus infinity, any finite reference will do.
    const __m512 reference = _mm512_set1_ps(max == kNoLogit ? 0 : max);
    for (int32_t tile = 0; tile < 2; ++tile) {
      const __m512 logit =
          _mm512_mul_ps(_mm512_load_ps(logits + tile * kSumTile), _mm512_set1_ps(1 / kLogitUnit));
      Bf16Operands::store_weights(reinterpret_cast<float*>(weights), tile * 16,
                                  exp2_weight<Avx512>(_mm512_sub_ps(logit, reference)));
    }
  }

  const AttentionTile& tile_;
  const StripState& state_;
  const StripSteps& unit_;
  int32_t step_ = 0;
  int32_t row_ = 2 * kStripRows;  // the next of both halves
  int32_t rows_[2] = {};          // in each half
  __m512i bits_ = _mm512_setzero_si512();
  alignas(64) float origins_[kStrips * kStripRows];
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
