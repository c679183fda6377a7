// Generated tokens: every weight row is read once, as stored, and multiplied with all input rows.
//
// A row's sum runs in eight lanes along the columns (four for either half of a group), even and odd
// groups apart, and the terms of the minimums in a vector of their own; the lanes are added at the
// end. The number of rows handled together changes none of it. Needs generic/weight_codes.inl.h and
// the vocabulary of isa/codes_*.h.
#pragma once

#include "kernels/generic/weight_codes.inl.h"

namespace winnow {
namespace {

// Sums of R input rows against one weight row. Everything is inlined into the loop over spans,
// where the number of groups is a constant: only then do the sums stay in registers.
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

  [[gnu::always_inline]] inline void multiply(const uint8_t* weight, float* out) const {
    Sums sums;
    for (int r = 0; r < R; ++r) sums.even[r] = sums.odd[r] = sums.minimum[r] = float8_zero();
    int64_t group = 0;
    for (; group + kSpanGroups <= groups_; group += kSpanGroups) {
      add_span(weight, group, kSpanGroups, sums);
      weight += Type::kSpanBytes;
    }
    if (group < groups_) add_span(weight, group, static_cast<int>(groups_ - group), sums);
    for (int r = 0; r < R; ++r) {
      out[r] = float8_sum(float8_add(sums.even[r], sums.odd[r]));
      if constexpr (Type::kMinimums) out[r] += float8_sum(sums.minimum[r]);
      if constexpr (Type::kZero != 0)
        out[r] -= static_cast<float>(Type::kZero) * float8_sum(sums.minimum[r]);
    }
  }

 private:
  static constexpr bool kSigned = Type::kBits == 8;
  static constexpr bool kHasSums = Type::kMinimums || Type::kZero != 0;

  struct Sums {
    Float8 even[R];  // of even groups
    Float8 odd[R];
    Float8 minimum[R];
  };

  // The first n groups of the span at `group`.
  [[gnu::always_inline]] inline void add_span(const uint8_t* span, int64_t group, int n,
                                              Sums& sums) const {
    alignas(32) float d[kMaxScales];
    alignas(32) float m[kMaxScales];
    alignas(32) float products[R][kMaxScales];
    Type::scales(span, n, d, m);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const float* from = scales_[r] + group;
      const Float8 scale = n == kSpanGroups ? float8_load(from) : float8_load_some(from, n);
      if constexpr (Type::kHalves) {
        const float* half_sums = sums_[r] + group * 2;
        add_scales(float8_twice_low(scale), d, m, half_sums, kSpanGroups, products[r],
                   sums.minimum[r]);
        add_scales(float8_twice_high(scale), d + 8, m + 8, half_sums + 8, kSpanGroups,
                   products[r] + 8, sums.minimum[r]);
      } else {
        add_scales(scale, d, m, sums_[r] + group, n, products[r], sums.minimum[r]);
      }
    }
    add_groups<0>(span, group, n, products, sums);
  }

  // Leaves weight scale * input scale in `products` and adds the terms of the minimums.
  [[gnu::always_inline]] static inline void add_scales(Float8 scale, const float* d, const float* m,
                                                       const float* code_sums, int n,
                                                       float* products, Float8& minimum) {
    const Float8 product = float8_mul(float8_load(d), scale);
    float8_store(products, product);
    if constexpr (kHasSums) {
      const Float8 factor = Type::kMinimums ? float8_mul(float8_load(m), scale) : product;
      const Float8 sum = n == kSpanGroups ? float8_load(code_sums) : float8_load_some(code_sums, n);
      minimum = float8_fma(factor, sum, minimum);
    }
  }

  template <int g>
  [[gnu::always_inline]] inline void add_groups(const uint8_t* span, int64_t group, int n,
                                                const float (&products)[R][kMaxScales],
                                                Sums& sums) const {
    if constexpr (g < kSpanGroups) {
      if (g >= n) return;
      const auto codes = Type::template codes<g>(span);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const Int8 dot = dot_group<kSigned>(codes, codes_[r] + (group + g) * kInputGroup);
        const Float8 scale = Type::kHalves ? float8_broadcast_pair(products[r] + 2 * g)
                                           : float8_broadcast(products[r] + g);
        Float8& sum = g % 2 == 0 ? sums.even[r] : sums.odd[r];
        sum = float8_fma(float8_from(dot), scale, sum);
      }
      add_groups<g + 1>(span, group, n, products, sums);
    }
  }

  int64_t groups_;
  const int16_t* codes_[R];
  const float* scales_[R];
  const float* sums_[R];
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

inline void order_codes(int16_t* codes, int64_t num_groups) {
  for (int64_t group = 0; group < num_groups; ++group) split_even_odd(codes + group * kInputGroup);
}

}  // namespace
}  // namespace winnow
