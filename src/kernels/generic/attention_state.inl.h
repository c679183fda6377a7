// What an attention tile keeps in its scratch, and which tokens its rows see. Include inside isa/
// files only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_kernels.h"

namespace winnow {
namespace {

constexpr float kNoLogit = -__builtin_inff();
constexpr float kLog2E = 1.4426950408889634F;
// Logits are computed, and V is weighted, in steps of this many tokens.
static_assert(kStepTokens == 32, "the pair step of an AMX tile");
// Rows behind the last one that a strip stored at its full size may take.
constexpr int kSpareRows = 16;

inline int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
inline int32_t larger(int32_t a, int32_t b) { return a > b ? a : b; }
inline int32_t divide_up(int32_t a, int32_t b) { return (a + b - 1) / b; }

// 32-bit units, pairs of 16-bit numbers, of V of one group of 16 dims.
constexpr int kVGroupUnits = kPageTokens / 2 * kKvLanes;

// Half-open range of tokens within a page.
struct TokenRange {
  int32_t begin;
  int32_t end;
  bool empty() const { return begin >= end; }
  // The steps that hold any of it.
  TokenRange in_steps() const {
    return {begin / kStepTokens * kStepTokens, divide_up(end, kStepTokens) * kStepTokens};
  }
  bool contains(TokenRange other) const { return begin <= other.begin && other.end <= end; }
};

// Tokens of `block` that any of the rows [first, last] sees.
inline TokenRange seen_by_any(const AttentionTile& tile, const AttentionBlock& block, int32_t first,
                              int32_t last) {
  const int32_t first_position = tile.first_position + first / tile.group - block.position;
  const int32_t last_position = tile.first_position + last / tile.group - block.position;
  const int32_t begin = tile.window > 0 ? first_position - tile.window + 1 : 0;
  return {larger(begin, block.begin_token), smaller(last_position + 1, block.end_token)};
}

inline TokenRange seen_by(const AttentionTile& tile, const AttentionBlock& block, int32_t row) {
  return seen_by_any(tile, block, row, row);
}

// Of a packed row in q and out.
inline int64_t row_offset(const AttentionTile& tile, int32_t row) {
  return row / tile.group * tile.query_stride + int64_t{row % tile.group} * tile.head_dim;
}

// Rows are worked on in strips of at most kStripRows, as equal as can be.
struct Strips {
  Strips(int32_t num_rows, int32_t max_rows)
      : count(divide_up(num_rows, max_rows)), rows(divide_up(num_rows, count)), total(num_rows) {}

  int32_t begin(int32_t strip) const { return strip * rows; }
  int32_t size(int32_t strip) const { return smaller(rows, total - begin(strip)); }

  int32_t count;
  int32_t rows;
  int32_t total;
};

// Cuts scratch memory into arrays that start on cache lines. Without memory it only tells how much
// they take.
class ScratchArrays {
 public:
  explicit ScratchArrays(std::byte* scratch) : start_(reinterpret_cast<float*>(scratch)) {}

  float* take(int64_t floats) {
    float* array = start_ == nullptr ? nullptr : start_ + used_;
    used_ += (floats + 15) / 16 * 16;
    return array;
  }
  int64_t bytes() const { return used_ * static_cast<int64_t>(sizeof(float)); }

 private:
  float* start_;
  int64_t used_ = 0;
};

// The tile's scratch. Without memory it only tells how much it takes.
struct TileState {
  TileState(std::byte* scratch, int32_t num_rows, int32_t head_dim) : rows(num_rows) {
    const int64_t room = int64_t{num_rows} + kSpareRows;
    ScratchArrays arrays(scratch);
    const auto take = [&](int64_t floats) { return arrays.take(floats); };
    max = take(room);
    sum = take(room);
    shrink = take(room);
    ones = take(room);
    acc = take(room * head_dim);
    weights = take(room * kPageTokens);
    // Strips are stored at their full size and may be part filled.
    q = take(2 * room * head_dim);
    operand = take(int64_t{kStepTokens} * larger(head_dim, kPageTokens));
    masked_v = reinterpret_cast<uint16_t*>(take(2 * kVGroupUnits));
    bytes = arrays.bytes();
  }

  int32_t rows;
  float* max;      // [rows]
  float* sum;      // [rows]
  float* shrink;   // [rows]: what the current block multiplies sum and acc by
  float* ones;     // [rows]: the same where nothing shrinks
  float* acc;      // [rows][head_dim]
  float* weights;  // [rows][kPageTokens]: logits of the current block, then their softmax weights
  float* q;        // packed as the products take it
  float* operand;  // K or V of a step, converted
  uint16_t* masked_v;  // V of two groups of dims as one row may see it
  int64_t bytes;
};

}  // namespace
}  // namespace winnow
