// Prompt tokens: a panel of weight rows is unpacked once, a block of columns at a time, and
// multiplied with all input rows.
//
// The panel holds 16-bit codes [group][step of 2 columns][output][2 columns], then d and m
// [group][half][output], and stays in the first-level cache while the input rows pass. A group of
// 32 columns adds scale * sum over halves of (d * dot + m * sum of codes) to a row's result; the
// dots are exact integers (32 * 128 * 32767 fits in 32 bits) and groups follow each other from the
// first to the last, so neither the tile nor the block shape shows in the result. Needs
// generic/weight_codes.inl.h and the vocabularies of isa/codes_*.h and isa/tile_*.h.
#pragma once

#include "kernels/generic/weight_codes.inl.h"

namespace winnow {
namespace {

constexpr int kPanelOutputs = kLanes * kTileVectors;
constexpr int kBlockGroups = 2 * kSpanGroups;
constexpr int kStepCodes = 2 * kPanelOutputs;
constexpr int kGroupCodes = kInputGroup * kPanelOutputs;

struct PromptPanel {
  alignas(64) int16_t codes[kBlockGroups * kGroupCodes];
  alignas(64) float d[kBlockGroups * 2 * kPanelOutputs];
  alignas(64) float m[kBlockGroups * 2 * kPanelOutputs];
};

// What one tile needs besides the panel.
struct PromptRows {
  const int16_t* codes[kTileRows];
  const float* scales[kTileRows];
  const float* sums[kTileRows];
};

template <class Type>
inline void unpack_group(Codes32 codes, int16_t* panel) {
  alignas(64) int16_t staged[kInputGroup];
  codes_store_wide<Type::kBits == 8>(staged, codes, Type::kZero);
  for (int step = 0; step < kInputGroup / 2; ++step) {
    std::memcpy(panel + step * kStepCodes, staged + step * 2, 4);
  }
}

template <class Type, int g>
inline void unpack_groups(const uint8_t* span, int n, int16_t* panel) {
  if constexpr (g < kSpanGroups) {
    if (g >= n) return;
    unpack_group<Type>(Type::template codes<g>(span), panel + g * kGroupCodes);
    unpack_groups<Type, g + 1>(span, n, panel);
  }
}

template <class Type>
constexpr int kHalvesOf = Type::kHalves ? 2 : 1;

// Groups [first, first + n), n <= kSpanGroups, of one weight row into column `output` of the panel.
template <class Type>
inline void unpack_span(const uint8_t* span, int first, int n, int output, PromptPanel& panel) {
  alignas(32) float d[kMaxScales];
  alignas(32) float m[kMaxScales];
  Type::scales(span, n, d, m);
  for (int i = 0; i < n * kHalvesOf<Type>; ++i) {
    const int at = (first * kHalvesOf<Type> + i) * kPanelOutputs + output;
    panel.d[at] = d[i];
    if constexpr (Type::kMinimums) panel.m[at] = m[i];
  }
  unpack_groups<Type, 0>(span, n, panel.codes + first * kGroupCodes + output * 2);
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
  constexpr int kHalves = kHalvesOf<Type>;
  constexpr int kSteps = kInputGroup / 2 / kHalves;
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
      const int16_t* codes = panel.codes + g * kGroupCodes + h * kSteps * kStepCodes;
      tile_dot<kSteps>(codes, rows.codes, g * kInputGroup + h * kHalfGroup, dots);
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
          total[r][v] =
              Type::kMinimums ? vec_fma(vec_load(m + v * kLanes), input_sum, scaled) : scaled;
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
    PromptPanel& panel = *reinterpret_cast<PromptPanel*>(task.scratch);
    if (task.num_outputs < kPanelOutputs) std::memset(&panel, 0, sizeof(panel));
    const int64_t num_groups = task.cols / kInputGroup;
    for (int64_t first = 0; first < num_groups; first += kBlockGroups) {
      const int groups =
          num_groups - first < kBlockGroups ? static_cast<int>(num_groups - first) : kBlockGroups;
      unpack_block<Type>(task, first, groups, panel);
      for (int64_t row = 0; row < task.num_rows; row += kTileRows) {
        const int count = tile_rows(task, row);
        PromptRows rows;
        for (int r = 0; r < kTileRows; ++r) {
          const int64_t row_idx = row + (r < count ? r : count - 1);
          const QuantizedRows& in = task.quantized;
          rows.codes[r] = in.codes + row_idx * task.cols + first * kInputGroup;
          rows.scales[r] = in.scales + row_idx * num_groups + first;
          rows.sums[r] = (kHalvesOf<Type> == 2 ? in.half_sums : in.sums) +
                         (row_idx * num_groups + first) * kHalvesOf<Type>;
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
