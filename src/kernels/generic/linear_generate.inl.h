// Generated tokens: every weight row is read once, as stored, and multiplied with all input rows.
//
// A row's sum runs in eight lanes along the columns, even and odd groups (or the two halves of a
// group) apart, and the terms of the minimums in a vector of their own; the lanes are added at the
// end. The number of rows handled together changes none of it. Needs generic/weight_codes.inl.h and
// the vocabulary of isa/codes_*.h.
#pragma once

#include "kernels/generic/weight_codes.inl.h"

namespace winnow {
namespace {

// Sums of R input rows against one weight row.
template <class Type, int R>
class GenerateTile {
 public:
  GenerateTile(const LinearTask& task, int64_t first_row) : groups_(task.cols / kInputGroup) {
    const QuantizedRows& in = task.quantized;
    for (int r = 0; r < R; ++r) {
      const int64_t row = first_row + r;
      codes_[r] = in.codes + row * task.cols;
      scales_[r] = in.scales + row * groups_;
      sums_[r] = Type::kHalves ? in.half_sums + row * groups_ * 2 : in.sums + row * groups_;
    }
  }

  void multiply(const uint8_t* weight, float* out) {
    for (int r = 0; r < R; ++r) sum_[r][0] = sum_[r][1] = minimum_sum_[r] = float8_zero();
    int64_t group = 0;
    for (; group + kSpanGroups <= groups_; group += kSpanGroups) {
      add_scales(weight, group, kSpanGroups);
      add_groups<0, kSpanGroups>(weight, group, kSpanGroups);
      weight += Type::kSpanBytes;
    }
    if (group < groups_) {
      const int n = static_cast<int>(groups_ - group);
      add_scales(weight, group, n);
      add_groups<0, kSpanGroups>(weight, group, n);
    }
    for (int r = 0; r < R; ++r) {
      out[r] = float8_sum(float8_add(sum_[r][0], sum_[r][1]));
      if constexpr (Type::kMinimums) out[r] += float8_sum(minimum_sum_[r]);
      if constexpr (Type::kZero != 0)
        out[r] -= static_cast<float>(Type::kZero) * float8_sum(minimum_sum_[r]);
    }
  }

 private:
  static constexpr bool kSigned = Type::kBits == 8;
  static constexpr bool kHasSums = Type::kMinimums || Type::kZero != 0;

  // Leaves weight scale * input scale of each group in products_ and adds the terms of the
  // minimums.
  inline void add_scales(const uint8_t* span, int64_t group, int n) {
    alignas(32) float d[kMaxScales];
    alignas(32) float m[kMaxScales];
    Type::scales(span, n, d, m);
    for (int r = 0; r < R; ++r) {
      const float* from = scales_[r] + group;
      const Float8 scale = n == kSpanGroups ? float8_load(from) : float8_load_some(from, n);
      if constexpr (Type::kHalves) {
        add_scale_vector(r, 0, float8_twice_low(scale), d, m, sums_[r] + group * 2, kSpanGroups);
        add_scale_vector(r, 8, float8_twice_high(scale), d, m, sums_[r] + group * 2, kSpanGroups);
      } else {
        add_scale_vector(r, 0, scale, d, m, sums_[r] + group, n);
      }
    }
  }

  inline void add_scale_vector(int r, int at, Float8 scale, const float* d, const float* m,
                               const float* sums, int n) {
    const Float8 product = float8_mul(float8_load(d + at), scale);
    float8_store(products_[r] + at, product);
    if constexpr (kHasSums) {
      const Float8 factor = Type::kMinimums ? float8_mul(float8_load(m + at), scale) : product;
      const Float8 sum = n == kSpanGroups ? float8_load(sums + at) : float8_load_some(sums + at, n);
      minimum_sum_[r] = float8_fma(factor, sum, minimum_sum_[r]);
    }
  }

  static inline void add_dot(Int8 dot, const float* scale, Float8& sum) {
    sum = float8_fma(float8_from(dot), float8_broadcast(scale), sum);
  }

  template <int g, int kEnd>
  inline void add_groups(const uint8_t* span, int64_t group, int n) {
    if constexpr (g < kEnd) {
      if (g >= n) return;
      const Codes32 codes = Type::template codes<g>(span);
      for (int r = 0; r < R; ++r) {
        const int16_t* input = codes_[r] + (group + g) * kInputGroup;
        const Int8 low = dot_low<kSigned>(codes, input), high = dot_high<kSigned>(codes, input);
        if constexpr (Type::kHalves) {
          add_dot(low, products_[r] + 2 * g, sum_[r][0]);
          add_dot(high, products_[r] + 2 * g + 1, sum_[r][1]);
        } else {
          add_dot(int8_add(low, high), products_[r] + g, sum_[r][g % 2]);
        }
      }
      add_groups<g + 1, kEnd>(span, group, n);
    }
  }

  int64_t groups_;
  const int16_t* codes_[R];
  const float* scales_[R];
  const float* sums_[R];
  Float8 sum_[R][2];
  Float8 minimum_sum_[R];
  alignas(32) float products_[R][kMaxScales];
};

template <class Type, int R>
inline void generate_rows(const LinearTask& task, int64_t output, int64_t first_row) {
  float out[R];
  GenerateTile<Type, R> tile(task, first_row);
  tile.multiply(reinterpret_cast<const uint8_t*>(task.weight + output * task.row_bytes), out);
  const float bias = task.bias == nullptr ? 0.0f : task.bias[output];
  for (int r = 0; r < R; ++r) task.y[(first_row + r) * task.y_stride + output] = out[r] + bias;
}

struct GenerateQuantized {
  const LinearTask& task;
  template <class Type>
  void run() const {
    for (int64_t output = 0; output < task.num_outputs; ++output) {
      int64_t row = 0;
      for (; row + 4 <= task.num_rows; row += 4) generate_rows<Type, 4>(task, output, row);
      if (row + 2 <= task.num_rows) {
        generate_rows<Type, 2>(task, output, row);
        row += 2;
      }
      if (row < task.num_rows) generate_rows<Type, 1>(task, output, row);
    }
  }
};

}  // namespace
}  // namespace winnow
