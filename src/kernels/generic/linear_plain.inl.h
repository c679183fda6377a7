// F32, F16 and BF16 weights: f32 products with the input as it is, one fused multiply-add per
// column. Needs generic/linear_prompt.inl.h and the vocabularies of isa/codes_*.h and isa/tile_*.h.
#pragma once

#include "kernels/generic/linear_prompt.inl.h"

namespace winnow {
namespace {

struct PlainF32 {
  static constexpr int kBytes = 4;
  static Float8 load8(const uint8_t* p) { return float8_load(reinterpret_cast<const float*>(p)); }
};
struct PlainF16 {
  static constexpr int kBytes = 2;
  static Float8 load8(const uint8_t* p) { return float8_from_halves(p); }
};
struct PlainBF16 {
  static constexpr int kBytes = 2;
  static Float8 load8(const uint8_t* p) { return float8_from_bfloats(p); }
};

// The first n <= 8 weights at p, zeros in the other lanes; reads no further.
template <class Type>
inline Float8 load_weights(const uint8_t* p, int64_t n) {
  if (n >= 8) return Type::load8(p);
  uint8_t staged[8 * Type::kBytes] = {};
  std::memcpy(staged, p, static_cast<size_t>(n) * Type::kBytes);
  return Type::load8(staged);
}

inline Float8 load_inputs(const float* p, int64_t n) {
  return n >= 8 ? float8_load(p) : float8_load_some(p, static_cast<int>(n));
}

constexpr int kPlainBlock = 256;  // columns unpacked at a time

struct PlainPanel {
  alignas(64) float weights[kPlainBlock * kPanelOutputs];  // [column][output]
};

template <class Type>
inline void unpack_plain_block(const LinearTask& task, int64_t first, int64_t count,
                               PlainPanel& panel) {
  for (int output = 0; output < kPanelOutputs; ++output) {
    const bool present = output < task.num_outputs;
    const uint8_t* row = reinterpret_cast<const uint8_t*>(task.weight + output * task.row_bytes);
    for (int64_t col = 0; col < count; col += 8) {
      alignas(32) float staged[8] = {};
      if (present)
        float8_store(staged, load_weights<Type>(row + (first + col) * Type::kBytes, count - col));
      for (int64_t i = 0; i < 8 && col + i < count; ++i)
        panel.weights[(col + i) * kPanelOutputs + output] = staged[i];
    }
  }
}

inline void add_plain_block(const PlainPanel& panel, const float* const* rows, int64_t count,
                            float (*sum)[kPanelOutputs]) {
  Vec total[kTileRows][kTileVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) total[r][v] = vec_load(sum[r] + v * kLanes);
  }
  for (int64_t col = 0; col < count; ++col) {
    Vec weights[kTileVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v)
      weights[v] = vec_load(panel.weights + col * kPanelOutputs + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const Vec input = vec_broadcast(rows[r] + col);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) total[r][v] = vec_fma(input, weights[v], total[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) vec_store(sum[r] + v * kLanes, total[r][v]);
  }
}

template <class Type>
inline void prompt_plain(const LinearTask& task) {
  PlainPanel& panel = *reinterpret_cast<PlainPanel*>(task.scratch);
  for (int64_t first = 0; first < task.cols; first += kPlainBlock) {
    const int64_t cols = task.cols - first < kPlainBlock ? task.cols - first : kPlainBlock;
    unpack_plain_block<Type>(task, first, cols, panel);
    for (int64_t row = 0; row < task.num_rows; row += kTileRows) {
      const int count = tile_rows(task, row);
      const float* rows[kTileRows];
      for (int r = 0; r < kTileRows; ++r)
        rows[r] = task.x + (row + (r < count ? r : count - 1)) * task.x_stride + first;
      alignas(64) float sum[kTileRows][kPanelOutputs];
      load_results(task, row, count, first == 0, sum);
      add_plain_block(panel, rows, cols, sum);
      store_results(task, row, count, first + cols == task.cols, sum);
    }
  }
}

template <class Type, int R>
inline void generate_plain_rows(const LinearTask& task, int64_t output, int64_t first_row) {
  const uint8_t* weight = reinterpret_cast<const uint8_t*>(task.weight + output * task.row_bytes);
  Float8 sum[R][2];
  for (int r = 0; r < R; ++r) sum[r][0] = sum[r][1] = float8_zero();
  for (int64_t col = 0; col < task.cols; col += 16) {
#pragma GCC unroll 2
    for (int part = 0; part < 2; ++part) {
      const int64_t at = col + 8 * part, left = task.cols - at;
      if (left <= 0) break;
      const Float8 weights = load_weights<Type>(weight + at * Type::kBytes, left);
      for (int r = 0; r < R; ++r) {
        const Float8 input = load_inputs(task.x + (first_row + r) * task.x_stride + at, left);
        sum[r][part] = float8_fma(weights, input, sum[r][part]);
      }
    }
  }
  const float bias = task.bias == nullptr ? 0.0f : task.bias[output];
  for (int r = 0; r < R; ++r) {
    task.y[(first_row + r) * task.y_stride + output] =
        float8_sum(float8_add(sum[r][0], sum[r][1])) + bias;
  }
}

template <class Type>
inline void generate_plain(const LinearTask& task) {
  for (int64_t output = 0; output < task.num_outputs; ++output) {
    int64_t row = 0;
    for (; row + 4 <= task.num_rows; row += 4) generate_plain_rows<Type, 4>(task, output, row);
    for (; row < task.num_rows; ++row) generate_plain_rows<Type, 1>(task, output, row);
  }
}

}  // namespace
}  // namespace winnow
