// The parts of linear() that differ between instruction sets, over plain pointers, so that isa/
// files need nothing else. linear.h tells what is computed; ref/linear_ref.cc is the arithmetic in
// its plainest form.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype_number.h"

namespace winnow {

// Input columns that share one scale when a row is quantised to int16.
inline constexpr int kInputGroup = 32;
// Some weight types change their scale every 16 columns: sums of codes are kept for both widths.
inline constexpr int kHalfGroup = kInputGroup / 2;

// Input rows as int16: x[c] ~ scales[c / kInputGroup] * codes[c], codes in [-32767, 32767].
// A group that holds a NaN or an infinity has scale NaN and codes 0, so that the result shows it.
struct QuantizedRows {
  int16_t* codes;    // [rows][cols]
  float* scales;     // [rows][cols / kInputGroup]
  float* sums;       // [rows][cols / kInputGroup], sum of the group's codes, exact
  float* half_sums;  // [rows][2][cols / kInputGroup], the same of the groups' first halves, then
                     // of their second halves
};

// Input rows as bf16, rounded to nearest even, for matrix units that take tiles: [row / 16]
// [column / 32][16 rows][32 columns]. Columns past the last are zeros; rows past the last hold
// anything. A NaN or an infinity stays one.
inline constexpr int kInputTileRows = 16;
inline constexpr int kInputTileColumns = 32;

// One task: `num_outputs` rows of a weight times all input rows.
struct LinearTask {
  DType dtype;
  const std::byte* weight;  // first weight row of the task; rows are row_bytes apart, any alignment
  int64_t row_bytes;
  int64_t num_outputs;
  const float* bias;  // [num_outputs] or null
  int64_t num_rows;
  int64_t cols;    // a multiple of the type's group
  const float* x;  // [num_rows][cols], x_stride apart: read by F32, F16 and BF16 weights
  int64_t x_stride;
  QuantizedRows quantized;      // the same rows as int16: read by all other weights
  const uint16_t* input_tiles;  // the same rows as tiles: read by prompt() given pack_tiles
  float* y;                     // y[row * y_stride + output], written
  int64_t y_stride;
  // The weight rows of the task that this thread is likely to be given next, or null: the first of
  // them are asked for ahead of time.
  const std::byte* next_weight;
  int64_t next_row_bytes;
  std::byte* scratch;  // scratch_bytes of this thread's own, 64-byte aligned
};

struct LinearKernels {
  // Quantises rows [row_begin, row_end) of x. Requires cols % kInputGroup == 0.
  void (*quantize)(const float* x, int64_t x_stride, int64_t cols, int64_t row_begin,
                   int64_t row_end, const QuantizedRows& out);
  // Rounds rows [row_begin, row_end) of x into tiles, 64-byte aligned, where prompt() reads those
  // for all but F32 weights; null where it reads x and QuantizedRows.
  void (*pack_tiles)(const float* x, int64_t x_stride, int64_t cols, int64_t row_begin,
                     int64_t row_end, uint16_t* tiles);
  // Prompt tokens: unpacks the weight rows once, then multiplies all input rows. num_outputs <=
  // prompt_outputs.
  void (*prompt)(const LinearTask& task);
  // Generated tokens: reads the weight rows once, as stored. Any num_outputs; multiples of
  // panel_outputs waste nothing.
  void (*generate)(const LinearTask& task);
  // Puts the codes of num_groups groups, one after the other, into the order in which prompt() and
  // generate() read them; null if that is the order of columns.
  void (*order_codes)(int16_t* codes, int64_t num_groups);
  int64_t panel_outputs;   // weight rows that are unpacked together
  int64_t prompt_outputs;  // weight rows that prompt() takes at most, a multiple of panel_outputs
  int64_t scratch_bytes;
};

// Whether products with this type use the int16 form of the input.
constexpr bool is_quantized(DType dtype) {
  return dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16;
}

const LinearKernels& linear_kernels_scalar();
const LinearKernels& linear_kernels_avx2();
const LinearKernels& linear_kernels_avx512();
const LinearKernels& linear_kernels_avx512bf16();
const LinearKernels& linear_kernels_amx();
const LinearKernels& linear_kernels_neon();

}  // namespace winnow
