// What a tile of rows keeps for attention on AMX tiles, in strips of 16 rows. For isa/ files only.
#pragma once

#include "kernels/generic/attention_state.inl.h"
#include "kernels/isa/attention_tiles.h"

namespace winnow {
namespace {

// Logits of one strip and step, or their weights.
constexpr int kStepLogits = kStripRows * kStepTokens;
// Weights of one strip in the steps that are worked on together.
constexpr int kStripWeights = kMaxSteps * kStepLogits;
// Logits of a round, which is what four tiles of sums take: two strips by one step, or one strip by
// two.
constexpr int kRoundLogits = 2 * kStepLogits;

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
    logits = take(2 * kRoundLogits);
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
  float* logits;       // [2 rounds][2 halves][2 tiles][16 rows][16 tokens]
  uint16_t* weights;   // [2 strips][step][16 rows][32 tokens] bf16
  uint16_t* masked_v;  // V of a group of dims as one row may see it
  int64_t bytes;
};

// A unit of work: one or two strips, and the steps of a page of which their rows see any.
struct StripSteps {
  int32_t first_strip;
  const AttentionStep* steps;
  int32_t num_steps;
  const AttentionBlock* block;  // whose steps they are, where some row does not see all of them
  int32_t first_token;          // of the steps, in the block's page

  TokenRange tokens() const { return {first_token, first_token + num_steps * kStepTokens}; }
};

}  // namespace
}  // namespace winnow
