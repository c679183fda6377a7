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

// Weights that are needed next: the same bytes of rows that are row_bytes apart. They are asked for
// a few lines at a time while products are made: many requests at once would stop the processor.
class NextWeights {
 public:
  NextWeights(const std::byte* first, int64_t row_bytes, int64_t num_bytes, int64_t num_rows)
      : row_(first), row_bytes_(row_bytes), num_bytes_(num_bytes), rows_left_(num_rows) {
    if (num_bytes < row_bytes || num_rows == 0) return;
    num_bytes_ = row_bytes * num_rows;  // the rows are one
    rows_left_ = 1;
  }

  // Cuts all that there is to ask for into this many calls of request().
  void share_out(int64_t num_calls) {
    const int64_t lines = rows_left_ * ((num_bytes_ + kLine - 1) / kLine + 1);
    lines_per_call_ = (lines + num_calls - 1) / num_calls;
  }
  void request() {
    for (int64_t i = 0; i < lines_per_call_ && rows_left_ > 0; ++i) {
      __builtin_prefetch(row_ + (at_ < num_bytes_ ? at_ : num_bytes_ - 1), 0, 2);
      at_ += kLine;
      if (at_ < num_bytes_ + kLine) continue;
      at_ = 0;
      row_ += row_bytes_;
      --rows_left_;
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  const std::byte* row_;
  int64_t row_bytes_;
  int64_t num_bytes_;  // of each row
  int64_t rows_left_;
  int64_t at_ = 0;
  int64_t lines_per_call_ = 0;
};

// What follows the block of columns at first_group: more columns of the same outputs, the first
// ones of the next outputs, or those of the next task.
template <class Type>
inline NextWeights next_weights(const BatchPart& part, int64_t first_group) {
  constexpr int64_t kBlockBytes = kBlockGroups / kSpanGroups * Type::kSpanBytes;
  const auto least = [](int64_t a, int64_t b) { return a < b ? a : b; };
  const LinearTask& task = part.task;
  const int64_t next_group = first_group + kBlockGroups;
  const int64_t next_output = part.first_output + kPanelOutputs;
  if (next_group < task.cols / kInputGroup) {
    const int64_t offset = next_group / kSpanGroups * Type::kSpanBytes;
    return {task.weight + part.first_output * task.row_bytes + offset, task.row_bytes,
            least(task.row_bytes - offset, kBlockBytes),
            least(task.num_outputs - part.first_output, kPanelOutputs)};
  }
  if (next_output < task.num_outputs) {
    return {task.weight + next_output * task.row_bytes, task.row_bytes,
            least(task.row_bytes, kBlockBytes),
            least(task.num_outputs - next_output, kPanelOutputs)};
  }
  return {task.next_weight, task.next_row_bytes, least(task.next_row_bytes, kBlockBytes),
          task.next_weight == nullptr ? 0 : kPanelOutputs};
}

// Adds the `groups` groups of the panel to the lanes of kRows rows from `row` on. A first span
// begins the lanes.
template <int kHalves, bool kMinimums, int kRows>
inline void add_to_lanes(const BatchPart& part, int row, int64_t first_group, int groups,
                         NextWeights& next, BatchPanel& panel) {
  constexpr int kRowLanes = kSpanGroups * kPanelOutputs;
  const PanelRows rows =
      panel_rows(part.task, part.first_row + row, kRows, first_group, kHalves == 2);
  for (int g = 0; g < groups; ++g) {
    next.request();
    Vec total[kRows][kTileVectors];
    panel_totals<kHalves, kMinimums>(panel.weights, rows, g, total);
    float* lanes = panel.lanes[row][g % kSpanGroups];
    const bool begins = first_group + g < kSpanGroups;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const Vec scale = vec_broadcast(rows.scales[r] + g);
#pragma GCC unroll 4
      for (int v = 0; v < kTileVectors; ++v) {
        float* at = lanes + r * kRowLanes + v * kLanes;
        vec_store(at, vec_fma(scale, total[r][v], begins ? vec_zero() : vec_load(at)));
      }
    }
  }
}

template <int kHalves, bool kMinimums>
inline void add_block(const BatchPart& part, int64_t first_group, int groups, NextWeights next,
                      BatchPanel& panel) {
  constexpr int kHalfTile = kTileRows / 2;
  next.share_out((part.num_rows + kTileRows - 1) / kTileRows * groups);
  int row = 0;
  for (; row + kTileRows <= part.num_rows; row += kTileRows)
    add_to_lanes<kHalves, kMinimums, kTileRows>(part, row, first_group, groups, next, panel);
  for (; row + kHalfTile <= part.num_rows; row += kHalfTile)
    add_to_lanes<kHalves, kMinimums, kHalfTile>(part, row, first_group, groups, next, panel);
  for (; row < part.num_rows; ++row)
    add_to_lanes<kHalves, kMinimums, 1>(part, row, first_group, groups, next, panel);
}

// The lanes of a row's results, added in the order of float8_sum(), and the bias.
inline void store_lanes(const BatchPart& part, int row, const BatchPanel& panel) {
  const LinearTask& task = part.task;
  const int64_t left = task.num_outputs - part.first_output;
  const float* bias = task.bias == nullptr ? nullptr : task.bias + part.first_output;
  float* y = task.y + (part.first_row + row) * task.y_stride + part.first_output;
  alignas(64) float out[kPanelOutputs];
  for (int v = 0; v < kTileVectors; ++v) {
    const auto at = [&](int i) { return vec_load(panel.lanes[row][i] + v * kLanes); };
    const Vec even = vec_add(vec_add(at(0), at(4)), vec_add(at(2), at(6)));
    const Vec odd = vec_add(vec_add(at(1), at(5)), vec_add(at(3), at(7)));
    const Vec sum = vec_add(even, odd);
    if (left < kPanelOutputs) {
      vec_store(out + v * kLanes, sum);
    } else {
      // A row of few sequences adds 0 where there is no bias.
      const Vec offset = bias == nullptr ? vec_zero() : vec_load(bias + v * kLanes);
      vec_store(y + v * kLanes, vec_add(sum, offset));
    }
  }
  for (int64_t i = 0; left < kPanelOutputs && i < left; ++i)
    y[i] = out[i] + (bias == nullptr ? 0.0f : bias[i]);
}

template <class Type>
inline void generate_part(const BatchPart& part, BatchPanel& panel) {
  const int64_t num_groups = part.task.cols / kInputGroup;
  if (num_groups < kSpanGroups)
    std::memset(panel.lanes, 0, sizeof(panel.lanes[0]) * static_cast<size_t>(part.num_rows));
  for (int64_t first = 0; first < num_groups; first += kBlockGroups) {
    const int64_t left = num_groups - first;
    const int groups = left < kBlockGroups ? static_cast<int>(left) : kBlockGroups;
    unpack_block<Type>(part.task, part.first_output, first, groups, panel.weights);
    add_block<kHalvesOf<Type>, Type::kMinimums>(part, first, groups,
                                                next_weights<Type>(part, first), panel);
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
