// Generated tokens of many sequences: a panel of weight rows is unpacked once, a block of columns
// at a time, and multiplied with all input rows. The sums are those of
// generic/linear_generate.inl.h, number for number: eight lanes to a result, group g in lane g % 8.
#pragma once

#include "kernels/generic/weight_panel.inl.h"

namespace winnow {
namespace {

// Rows whose lanes are kept between blocks. More rows unpack the weights once more.
constexpr int kBatchRows = 64;

struct BatchPanel {
  WeightPanel weights;
  alignas(64) float lanes[kBatchRows][kSpanGroups][kPanelOutputs];
};

// Input rows [first_row, first_row + num_rows), num_rows <= kBatchRows, and the outputs of a panel.
struct BatchPart {
  const LinearTask& task;
  int64_t first_output;
  int64_t first_row;
  int num_rows;
};

// Adds the `groups` groups of the panel to the lanes of kRows rows from `row` on.
template <int kHalves, bool kMinimums, int kRows>
inline void add_to_lanes(const BatchPart& part, int row, int64_t first_group, int groups,
                         BatchPanel& panel) {
  const PanelRows rows =
      panel_rows(part.task, part.first_row + row, kRows, first_group, kHalves == 2);
  for (int g = 0; g < groups; ++g) {
    Vec total[kRows][kTileVectors];
    panel_totals<kHalves, kMinimums>(panel.weights, rows, g, total);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec scale = vec_broadcast(rows.scales[r] + g);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        float* at = panel.lanes[row + r][g % kSpanGroups] + v * kLanes;
        vec_store(at, vec_fma(scale, total[r][v], vec_load(at)));
      }
    }
  }
}

template <int kHalves, bool kMinimums>
inline void add_block(const BatchPart& part, int64_t first_group, int groups, BatchPanel& panel) {
  constexpr int kHalfTile = kTileRows / 2;
  int row = 0;
  for (; row + kTileRows <= part.num_rows; row += kTileRows)
    add_to_lanes<kHalves, kMinimums, kTileRows>(part, row, first_group, groups, panel);
  for (; row + kHalfTile <= part.num_rows; row += kHalfTile)
    add_to_lanes<kHalves, kMinimums, kHalfTile>(part, row, first_group, groups, panel);
  for (; row < part.num_rows; ++row)
    add_to_lanes<kHalves, kMinimums, 1>(part, row, first_group, groups, panel);
}

// The lanes of a row's results, added in the order of float8_sum(), and the bias.
inline void store_lanes(const BatchPart& part, int row, const BatchPanel& panel) {
  const LinearTask& task = part.task;
  alignas(64) float out[kPanelOutputs];
  for (int v = 0; v < kTileVectors; ++v) {
    Vec sum[kSpanGroups];
#pragma GCC unroll 8
    for (int i = 0; i < kSpanGroups; ++i) sum[i] = vec_load(panel.lanes[row][i] + v * kLanes);
#pragma GCC unroll 3
    for (int half = kSpanGroups / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
      for (int i = 0; i < half; ++i) sum[i] = vec_add(sum[i], sum[i + half]);
    }
    vec_store(out + v * kLanes, sum[0]);
  }
  const int64_t left = task.num_outputs - part.first_output;
  const int64_t count = left < kPanelOutputs ? left : kPanelOutputs;
  float* y = task.y + (part.first_row + row) * task.y_stride + part.first_output;
  for (int64_t i = 0; i < count; ++i)
    y[i] = out[i] + (task.bias == nullptr ? 0.0f : task.bias[part.first_output + i]);
}

template <class Type>
inline void generate_part(const BatchPart& part, BatchPanel& panel) {
  std::memset(panel.lanes, 0, sizeof(panel.lanes[0]) * static_cast<size_t>(part.num_rows));
  const int64_t num_groups = part.task.cols / kInputGroup;
  for (int64_t first = 0; first < num_groups; first += kBlockGroups) {
    const int64_t left = num_groups - first;
    const int groups = left < kBlockGroups ? static_cast<int>(left) : kBlockGroups;
    unpack_block<Type>(part.task, part.first_output, first, groups, panel.weights);
    add_block<kHalvesOf<Type>, Type::kMinimums>(part, first, groups, panel);
  }
  for (int row = 0; row < part.num_rows; ++row) store_lanes(part, row, panel);
}

template <class Type>
inline void generate_batch(const LinearTask& task) {
  BatchPanel& panel = *reinterpret_cast<BatchPanel*>(task.scratch);
  for (int64_t output = 0; output < task.num_outputs; output += kPanelOutputs) {
    for (int64_t row = 0; row < task.num_rows; row += kBatchRows) {
      const int64_t left = task.num_rows - row;
      const int rows = left < kBatchRows ? static_cast<int>(left) : kBatchRows;
      generate_part<Type>({task, output, row, rows}, panel);
    }
  }
}

}  // namespace
}  // namespace winnow
