// Linear layers in plain loops: the definition of the arithmetic that every instruction set
// reproduces up to the rounding of its f32 sums.
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/linear_kernels.h"
#include "kernels/ref/weight_groups.h"
#include "tensor/half.h"

namespace winnow {
namespace {

// Below this largest magnitude a group counts as zero: its reciprocal would overflow.
constexpr float kSmallestMax = 1e-30f;
constexpr float kLargestCode = 32767;

// The largest |x|, NaN and infinities included: the bits of a float without its sign order like its
// magnitude.
float magnitude_max(const float* x, int count) {
  uint32_t most = 0;
  for (int i = 0; i < count; ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(x[i]) & 0x7fffffffU;
    if (bits > most) most = bits;
  }
  return std::bit_cast<float>(most);
}

float quantize_group(const float* x, int16_t* codes) {
  const float most = magnitude_max(x, kInputGroup);
  const bool usable = std::isfinite(most) && most >= kSmallestMax;
  const float inverse = usable ? kLargestCode / most : 0.0f;
  for (int i = 0; i < kInputGroup; ++i) {
    codes[i] = usable ? static_cast<int16_t>(std::nearbyint(x[i] * inverse)) : int16_t{0};
  }
  if (usable) return most / kLargestCode;
  return std::isfinite(most) ? 0.0f : std::nanf("");
}

float sum_codes(const int16_t* codes, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += codes[i];
  return static_cast<float>(sum);
}

void quantize(const float* x, int64_t x_stride, int64_t cols, int64_t row_begin, int64_t row_end,
              const QuantizedRows& out) {
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t col = 0; col < cols; col += kInputGroup) {
      int16_t* codes = out.codes + row * cols + col;
      const int64_t group = (row * cols + col) / kInputGroup;
      out.scales[group] = quantize_group(x + row * x_stride + col, codes);
      const int64_t groups = cols / kInputGroup;
      float* half_sums = out.half_sums + row * 2 * groups + col / kInputGroup;
      half_sums[0] = sum_codes(codes, kHalfGroup);
      half_sums[groups] = sum_codes(codes + kHalfGroup, kHalfGroup);
      out.sums[group] = sum_codes(codes, kInputGroup);
    }
  }
}

float dot_codes(const int* weight_codes, const int16_t* codes) {
  int sum = 0;
  for (int i = 0; i < kHalfGroup; ++i) sum += weight_codes[i] * codes[i];
  return static_cast<float>(sum);
}

// Groups from first to last: y += scale * sum over halves of (d * dot + m * sum of codes).
void multiply_quantized(const LinearTask& task, int64_t output) {
  const QuantizedRows& in = task.quantized;
  const int64_t groups = task.cols / kInputGroup;
  for (int64_t group_idx = 0; group_idx < groups; ++group_idx) {
    const ref::WeightGroup group =
        ref::read_weight_group(task.dtype, task.weight + output * task.row_bytes, group_idx);
    for (int64_t row = 0; row < task.num_rows; ++row) {
      const int16_t* codes = in.codes + row * task.cols + group_idx * kInputGroup;
      float sum = 0;
      for (int h = 0; h < 2; ++h) {
        const float half_sum = in.half_sums[(row * 2 + h) * groups + group_idx];
        sum += group.d[h] * dot_codes(group.codes + h * kHalfGroup, codes + h * kHalfGroup) +
               group.m[h] * half_sum;
      }
      task.y[row * task.y_stride + output] += in.scales[row * groups + group_idx] * sum;
    }
  }
}

float weight_at(const LinearTask& task, int64_t output, int64_t col) {
  const std::byte* row = task.weight + output * task.row_bytes;
  if (task.dtype == DType::kF32) {
    float value;
    std::memcpy(&value, row + col * 4, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, row + col * 2, sizeof(bits));
  return task.dtype == DType::kF16 ? f16_to_float(bits) : bf16_to_float(bits);
}

void multiply_plain(const LinearTask& task, int64_t output) {
  for (int64_t col = 0; col < task.cols; ++col) {
    const float weight = weight_at(task, output, col);
    for (int64_t row = 0; row < task.num_rows; ++row) {
      task.y[row * task.y_stride + output] += weight * task.x[row * task.x_stride + col];
    }
  }
}

void multiply(const LinearTask& task) {
  for (int64_t output = 0; output < task.num_outputs; ++output) {
    for (int64_t row = 0; row < task.num_rows; ++row) task.y[row * task.y_stride + output] = 0;
    if (is_quantized(task.dtype)) {
      multiply_quantized(task, output);
    } else {
      multiply_plain(task, output);
    }
    if (task.bias == nullptr) continue;
    for (int64_t row = 0; row < task.num_rows; ++row)
      task.y[row * task.y_stride + output] += task.bias[output];
  }
}

}  // namespace

const LinearKernels& linear_kernels_scalar() {
  static constexpr LinearKernels kernels{.quantize = quantize,
                                         .pack_tiles = nullptr,
                                         .prompt = multiply,
                                         .generate = multiply,
                                         .order_codes = nullptr,
                                         .panel_outputs = 16,
                                         .prompt_outputs = 16,
                                         .scratch_bytes = 0};
  return kernels;
}

}  // namespace winnow
