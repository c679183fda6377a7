// A panel of weight rows, unpacked a block of columns at a time so that it stays in the first-level
// cache while input rows pass: 16-bit codes [group][step of 2 columns][output][2 columns], then d
// and m [group][half][output].
//
// Sums over the columns of a group, or of half a group, are exact integers (32 * 128 * 32767 fits
// in 32 bits), so the order of columns shows in no result. Needs generic/weight_codes.inl.h and the
// vocabularies of isa/codes_*.h and isa/tile_*.h.
#pragma once

#include "kernels/generic/weight_codes.inl.h"

namespace winnow {
namespace {

constexpr int kPanelOutputs = kLanes * kTileVectors;
constexpr int kBlockGroups = 4 * kSpanGroups;
constexpr int kStepCodes = 2 * kPanelOutputs;
constexpr int kGroupCodes = kInputGroup * kPanelOutputs;
constexpr int kUnpackOutputs = 8;  // rows whose columns change places together
static_assert(kPanelOutputs % kUnpackOutputs == 0 && kSpanGroups == 8);

struct WeightPanel {
  alignas(64) int16_t codes[kBlockGroups * kGroupCodes];
  alignas(64) float d[kBlockGroups * 2 * kPanelOutputs];
  alignas(64) float m[kBlockGroups * 2 * kPanelOutputs];
};

// Input rows as one tile reads them: from the first group of a block on.
struct PanelRows {
  const int16_t* codes[kTileRows];
  const float* scales[kTileRows];
  const float* sums[kTileRows];  // of groups, or of first halves
  int64_t half_stride;           // from the sum of a first half to that of the second
};

template <class Type>
constexpr int kHalvesOf = Type::kHalves ? 2 : 1;

// The weight rows of a task from the first byte of a span on. Outputs that the task lacks repeat
// its last one; nobody reads their results.
struct SpanRows {
  const uint8_t* first;
  int64_t row_bytes;
  int64_t num_outputs;

  const uint8_t* row(int64_t output) const {
    return first + (output < num_outputs ? output : num_outputs - 1) * row_bytes;
  }
};

template <class Type, int g>
inline void unpack_groups(const uint8_t* const* spans, int n, int16_t* panel) {
  if constexpr (g < kSpanGroups) {
    if (g >= n) return;
    Codes32 codes[kUnpackOutputs];
#pragma GCC unroll 8
    for (int i = 0; i < kUnpackOutputs; ++i) codes[i] = Type::template codes<g>(spans[i]);
    store_eight_outputs<Type::kBits == 8, Type::kZero>(codes, panel + g * kGroupCodes, kStepCodes);
    unpack_groups<Type, g + 1>(spans, n, panel);
  }
}

// Groups [first, first + n), n <= kSpanGroups, of all rows into the panel; the scales of a span's
// other groups become zeros.
template <class Type>
inline void unpack_span(const SpanRows& rows, int first, int n, WeightPanel& panel) {
  for (int output = 0; output < kPanelOutputs; output += kUnpackOutputs) {
    const uint8_t* spans[kUnpackOutputs];
    alignas(32) float d[kUnpackOutputs][kMaxScales];
    alignas(32) float m[kUnpackOutputs][kMaxScales];
    for (int i = 0; i < kUnpackOutputs; ++i) {
      spans[i] = rows.row(output + i);
      Type::scales(spans[i], n, d[i], m[i]);
    }
    for (int h = 0; h < kHalvesOf<Type>; ++h) {
      const int at = (first * 2 + h) * kPanelOutputs + output;
      float8_transpose(d[0] + h * kSpanGroups, kMaxScales, panel.d + at, 2 * kPanelOutputs);
      if constexpr (Type::kMinimums)
        float8_transpose(m[0] + h * kSpanGroups, kMaxScales, panel.m + at, 2 * kPanelOutputs);
    }
    unpack_groups<Type, 0>(spans, n, panel.codes + first * kGroupCodes + output * 2);
  }
}

template <class Type>
inline void unpack_block(const LinearTask& task, int64_t first_output, int64_t first_group,
                         int groups, WeightPanel& panel) {
  const auto* weight = reinterpret_cast<const uint8_t*>(task.weight);
  SpanRows rows{
      weight + first_output * task.row_bytes + first_group / kSpanGroups * Type::kSpanBytes,
      task.row_bytes, task.num_outputs - first_output};
  for (int g = 0; g < groups; g += kSpanGroups) {
    unpack_span<Type>(rows, g, groups - g < kSpanGroups ? groups - g : kSpanGroups, panel);
    rows.first += Type::kSpanBytes;
  }
}

// Rows [row, row + count) from `first_group` on; a tile's rows after those repeat the last.
inline PanelRows panel_rows(const LinearTask& task, int64_t row, int count, int64_t first_group,
                            bool halves) {
  const QuantizedRows& in = task.quantized;
  const int64_t groups = task.cols / kInputGroup;
  PanelRows rows;
  rows.half_stride = groups;
  for (int r = 0; r < kTileRows; ++r) {
    const int64_t row_idx = row + (r < count ? r : count - 1);
    rows.codes[r] = in.codes + row_idx * task.cols + first_group * kInputGroup;
    rows.scales[r] = in.scales + row_idx * groups + first_group;
    rows.sums[r] =
        (halves ? in.half_sums + row_idx * 2 * groups : in.sums + row_idx * groups) + first_group;
  }
  return rows;
}

// The products of group g of the panel with the same group of kRows rows, in integers: of all its
// columns, or of half of them.
template <int kHalves, int kRows>
[[gnu::always_inline]] inline void panel_dots(const WeightPanel& panel, const PanelRows& rows,
                                              int g, int half,
                                              IntVec (&dots)[kRows][kTileVectors]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) dots[r][v] = int_zero();
  }
  const int16_t* codes = panel.codes + g * kGroupCodes;
  const int col = g * kInputGroup;
  if constexpr (kHalves == 1) {
    tile_dot<16>(codes, rows.codes, col, dots);
  } else {
    // With the even columns first, half a group is four steps of either kind.
    const int first = half * (kSplitsEvenOdd ? 4 : 8), second = first + (kSplitsEvenOdd ? 8 : 4);
    tile_dot<4>(codes + first * kStepCodes, rows.codes, col + first * 2, dots);
    tile_dot<4>(codes + second * kStepCodes, rows.codes, col + second * 2, dots);
  }
}

// What group g of the panel adds to each row, before the row's scale: the sum over halves of
// (d * dot + m * sum of the row's codes).
template <int kHalves, bool kMinimums, int kRows>
[[gnu::always_inline]] inline void panel_totals(const WeightPanel& panel, const PanelRows& rows,
                                                int g, Vec (&total)[kRows][kTileVectors]) {
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
    IntVec dots[kRows][kTileVectors];
    panel_dots<kHalves>(panel, rows, g, h, dots);
    const float* d = panel.d + (g * 2 + h) * kPanelOutputs;
    const float* m = panel.m + (g * 2 + h) * kPanelOutputs;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const float* sums = rows.sums[r] + g + h * rows.half_stride;
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        const Vec dot = vec_from(dots[r][v]);
        const Vec scaled = h == 0 ? vec_mul(vec_load(d + v * kLanes), dot)
                                  : vec_fma(vec_load(d + v * kLanes), dot, total[r][v]);
        total[r][v] =
            kMinimums ? vec_fma(vec_load(m + v * kLanes), vec_broadcast(sums), scaled) : scaled;
      }
    }
  }
}

}  // namespace
}  // namespace winnow
