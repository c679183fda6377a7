// Prompt tokens: a panel of weight rows is unpacked once, a block of columns at a time, and
// multiplied with all input rows.
//
// A group of 32 columns adds scale * sum over halves of (d * dot + m * sum of codes) to a row's
// result; groups follow each other from the first to the last, so neither the tile nor the block
// shape shows in the result.
#pragma once

#include "kernels/generic/weight_panel.inl.h"

namespace winnow {
namespace {

// sum[r] += the panel's groups.
template <int kHalves, bool kMinimums>
inline void add_to_sums(const WeightPanel& panel, const PanelRows& rows, int groups,
                        float (*sum)[kPanelOutputs]) {
  for (int g = 0; g < groups; ++g) {
    Vec total[kTileRows][kTileVectors];
    panel_totals<kHalves, kMinimums>(panel, rows, g, total);
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
    WeightPanel& panel = *reinterpret_cast<WeightPanel*>(task.scratch);
    const int64_t num_groups = task.cols / kInputGroup;
    for (int64_t first = 0; first < num_groups; first += kBlockGroups) {
      const int groups =
          num_groups - first < kBlockGroups ? static_cast<int>(num_groups - first) : kBlockGroups;
      unpack_block<Type>(task, 0, first, groups, panel);
      for (int64_t row = 0; row < task.num_rows; row += kTileRows) {
        const int count = tile_rows(task, row);
        alignas(64) float sum[kTileRows][kPanelOutputs];
        load_results(task, row, count, first == 0, sum);
        add_to_sums<kHalvesOf<Type>, Type::kMinimums>(
            panel, panel_rows(task, row, count, first, Type::kHalves), groups, sum);
        store_results(task, row, count, first + groups == num_groups, sum);
      }
    }
  }
};

}  // namespace
}  // namespace winnow
