// Prompt tokens: a panel of weight rows is unpacked once, a block of columns at a time, and
// multiplied with all input rows.
//
// The panel holds codes [group][plane][step of 4 columns][output][4 columns], then d and m
// [group][half][output], and stays in the first-level cache while the input rows pass. A group of
// 32 columns adds scale * sum over halves of (d * dot + m * sum of codes) to a row's result; the
// dots are exact integers and groups follow each other from the first to the last, so neither the
// tile nor the block shape shows in the result. Needs generic/weight_codes.inl.h and the
// vocabularies of isa/codes_*.h and isa/tile_*.h.
#pragma once

#include "kernels/generic/weight_codes.inl.h"

namespace winnow {
namespace {

constexpr int kPanelOutputs = kLanes * kTileVectors;
constexpr int kBlockGroups = 4 * kSpanGroups;  // over the number of planes
constexpr int kStepBytes = 4 * kPanelOutputs;
constexpr int kPlaneBytes = kInputGroup * kPanelOutputs;

struct PromptPanel {
  alignas(64) uint8_t codes[kBlockGroups * kPlaneBytes];
  alignas(64) float d[kBlockGroups * 2 * kPanelOutputs];
  alignas(64) float m[kBlockGroups * 2 * kPanelOutputs];
};

// What one tile needs besides the panel.
struct PromptRows {
  const int8_t* codes[kTileRows];
  const float* scales[kTileRows];
  const float* sums[kTileRows];
};

template <class Type>
struct PromptShape {
  static constexpr int kPlanes = kNibblePlanes && Type::kBits == 8 ? 2 : 1;
  static constexpr int kPlaneBits = kPlanes == 2 ? 4 : Type::kBits;
  static constexpr int kHalves = Type::kHalves ? 2 : 1;
  // Eight-bit codes become unsigned where the instruction wants that.
  static constexpr bool kBiased = Type::kBits == 8 && kUnsignedCodes;
  static constexpr int kZero = kBiased ? 128 : Type::kZero;
  static constexpr int kGroupBytes = kPlanes * kPlaneBytes;
};

inline void scatter_codes(const uint8_t* codes, uint8_t* panel) {
  for (int step = 0; step < kInputGroup / 4; ++step)
    std::memcpy(panel + step * kStepBytes, codes + step * 4, 4);
}

template <class Type>
inline void unpack_group(Codes32 codes, uint8_t* panel) {
  using Shape = PromptShape<Type>;
  alignas(32) uint8_t staged[kInputGroup];
  if constexpr (Shape::kBiased) codes = codes_xor(codes, 0x80);
  if constexpr (Shape::kPlanes == 1) {
    codes_store(staged, codes);
    scatter_codes(staged, panel);
  } else {
    codes_store(staged, codes_field<0>(codes, 15));
    scatter_codes(staged, panel);
    codes_store(staged, codes_field<4>(codes, 15));
    scatter_codes(staged, panel + kPlaneBytes);
  }
}

template <class Type, int g>
inline void unpack_groups(const uint8_t* span, int n, uint8_t* panel) {
  if constexpr (g < kSpanGroups) {
    if (g >= n) return;
    unpack_group<Type>(Type::template codes<g>(span), panel + g * PromptShape<Type>::kGroupBytes);
    unpack_groups<Type, g + 1>(span, n, panel);
  }
}

// Groups [first, first + n), n <= kSpanGroups, of one weight row into column `output` of the panel.
template <class Type>
inline void unpack_span(const uint8_t* span, int first, int n, int output, PromptPanel& panel) {
  using Shape = PromptShape<Type>;
  alignas(32) float d[kMaxScales];
  alignas(32) float m[kMaxScales];
  Type::scales(span, n, d, m);
  for (int i = 0; i < n * Shape::kHalves; ++i) {
    const int at = (first * Shape::kHalves + i) * kPanelOutputs + output;
    panel.d[at] = d[i];
    panel.m[at] = Type::kMinimums ? m[i] : d[i] * static_cast<float>(-Shape::kZero);
  }
  unpack_groups<Type, 0>(span, n, panel.codes + first * Shape::kGroupBytes + output * 4);
}

template <class Type>
inline void unpack_block(const LinearTask& task, int64_t first_group, int groups,
                         PromptPanel& panel) {
  for (int output = 0; output < task.num_outputs; ++output) {
    const uint8_t* row = reinterpret_cast<const uint8_t*>(task.weight + output * task.row_bytes);
    for (int g = 0; g < groups; g += kSpanGroups) {
      const uint8_t* span = row + (first_group + g) / kSpanGroups * Type::kSpanBytes;
      unpack_span<Type>(span, g, groups - g < kSpanGroups ? groups - g : kSpanGroups, output,
                        panel);
    }
  }
}

// sum[r] += the block's groups.
template <class Type>
inline void add_block(const PromptPanel& panel, const PromptRows& rows, int groups,
                      float (*sum)[kPanelOutputs]) {
  using Shape = PromptShape<Type>;
  constexpr int kHalves = Shape::kHalves;
  constexpr int kSteps = kInputGroup / 4 / kHalves;
  for (int g = 0; g < groups; ++g) {
    Vec total[kTileRows][kTileVectors];
#pragma GCC unroll 2
    for (int h = 0; h < kHalves; ++h) {
      IntVec dots[kTileRows][kTileVectors];
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) {
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) dots[r][v] = int_zero();
      }
      const uint8_t* codes = panel.codes + g * Shape::kGroupBytes + h * kSteps * kStepBytes;
      const int64_t col = g * kInputGroup + h * kHalfGroup;
      tile_dot<kSteps, Shape::kPlaneBits>(codes, rows.codes, col, 1, dots);
      if constexpr (Shape::kPlanes == 2) {
        tile_dot<kSteps, Shape::kPlaneBits>(codes + kPlaneBytes, rows.codes, col, 16, dots);
      }
      const float* d = panel.d + (g * kHalves + h) * kPanelOutputs;
      const float* m = panel.m + (g * kHalves + h) * kPanelOutputs;
#pragma GCC unroll 8
      for (int r = 0; r < kTileRows; ++r) {
        const Vec input_sum = vec_broadcast(rows.sums[r] + g * kHalves + h);
#pragma GCC unroll 4
        for (int v = 0; v < kTileVectors; ++v) {
          const Vec dot = vec_from(dots[r][v]);
          const Vec scaled = h == 0 ? vec_mul(vec_load(d + v * kLanes), dot)
                                    : vec_fma(vec_load(d + v * kLanes), dot, total[r][v]);
          total[r][v] = vec_fma(vec_load(m + v * kLanes), input_sum, scaled);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kTileRows; ++r) {
      const Vec scale = vec_broadcast(rows.scales[r] + g);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        float* at = sum[r] + v * kLanes;
        vec_store(at, vec_fma(scale, total[r][v], vec_load(at)));
      }
    }
  }
}

// The results of rows [first_row, first_row + count) live in y between blocks.
inline void load_results(const LinearTask& task, int64_t first_row, int count, bool first_block,
                         float (*sum)[kPanelOutputs]) {
  for (int r = 0; r < kTileRows; ++r) {
    if (first_block || r >= count) {
      for (int v = 0; v < kTileVectors; ++v) vec_store(sum[r] + v * kLanes, vec_zero());
      continue;
    }
    const float* from = task.y + (first_row + r) * task.y_stride;
    if (task.num_outputs == kPanelOutputs) {
      for (int v = 0; v < kTileVectors; ++v)
        vec_store(sum[r] + v * kLanes, vec_load(from + v * kLanes));
    } else {
      for (int i = 0; i < kPanelOutputs; ++i) sum[r][i] = i < task.num_outputs ? from[i] : 0.0f;
    }
  }
}

inline void store_results(const LinearTask& task, int64_t first_row, int count, bool last_block,
                          const float (*sum)[kPanelOutputs]) {
  alignas(64) float bias[kPanelOutputs] = {};
  const bool add_bias = last_block && task.bias != nullptr;
  for (int i = 0; add_bias && i < task.num_outputs; ++i) bias[i] = task.bias[i];
  for (int r = 0; r < count; ++r) {
    float* to = task.y + (first_row + r) * task.y_stride;
    if (task.num_outputs == kPanelOutputs) {
      for (int v = 0; v < kTileVectors; ++v) {
        const Vec value = vec_load(sum[r] + v * kLanes);
        vec_store(to + v * kLanes, add_bias ? vec_add(value, vec_load(bias + v * kLanes)) : value);
      }
    } else {
      for (int i = 0; i < task.num_outputs; ++i) to[i] = add_bias ? sum[r][i] + bias[i] : sum[r][i];
    }
  }
}

// Rows of a tile that reaches past the last row repeat it; their results are dropped.
inline int tile_rows(const LinearTask& task, int64_t first_row) {
  const int64_t left = task.num_rows - first_row;
  return left < kTileRows ? static_cast<int>(left) : kTileRows;
}

struct PromptQuantized {
  const LinearTask& task;

  template <class Type>
  void run() const {
    using Shape = PromptShape<Type>;
    PromptPanel& panel = *reinterpret_cast<PromptPanel*>(task.scratch);
    if (task.num_outputs < kPanelOutputs) std::memset(&panel, 0, sizeof(panel));
    const int64_t num_groups = task.cols / kInputGroup;
    constexpr int kTypeGroups = kBlockGroups / Shape::kPlanes;
    for (int64_t first = 0; first < num_groups; first += kTypeGroups) {
      const int groups =
          num_groups - first < kTypeGroups ? static_cast<int>(num_groups - first) : kTypeGroups;
      unpack_block<Type>(task, first, groups, panel);
      for (int64_t row = 0; row < task.num_rows; row += kTileRows) {
        const int count = tile_rows(task, row);
        PromptRows rows;
        for (int r = 0; r < kTileRows; ++r) {
          const int64_t row_idx = row + (r < count ? r : count - 1);
          const QuantizedRows& in = task.quantized;
          rows.codes[r] = in.codes + row_idx * task.cols + first * kInputGroup;
          rows.scales[r] = in.scales + row_idx * num_groups + first;
          rows.sums[r] = (Shape::kHalves == 2 ? in.half_sums : in.sums) +
                         (row_idx * num_groups + first) * Shape::kHalves;
        }
        alignas(64) float sum[kTileRows][kPanelOutputs];
        load_results(task, row, count, first == 0, sum);
        add_block<Type>(panel, rows, groups, sum);
        store_results(task, row, count, first + groups == num_groups, sum);
      }
    }
  }
};

}  // namespace
}  // namespace winnow
