// Input rows to int16. Needs quantize_input_group() of isa/codes_*.h.
#pragma once

namespace winnow {
namespace {

inline void quantize_rows(const float* x, int64_t x_stride, int64_t cols, int64_t row_begin,
                          int64_t row_end, const QuantizedRows& out) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t col = 0; col < cols; col += kInputGroup) {
      const int64_t groups = cols / kInputGroup, group_idx = row * groups + col / kInputGroup;
      const InputGroup group =
          quantize_input_group(x + row * x_stride + col, out.codes + row * cols + col);
      out.scales[group_idx] = group.scale;
      float* half_sums = out.half_sums + group_idx + row * groups;
      half_sums[0] = static_cast<float>(group.sum_low);
      half_sums[groups] = static_cast<float>(group.sum_high);
      out.sums[group_idx] = static_cast<float>(group.sum_low + group.sum_high);
    }
  }
}

}  // namespace
}  // namespace winnow
