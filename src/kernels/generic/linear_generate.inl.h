// Generated tokens of one or two sequences: every weight row is read once, as stored.
//
// A row's sum runs in eight lanes, group g in lane g % 8, from the first to the last: scale * sum
// over halves of (d * dot + m * sum of codes), where dot is an exact integer. The lanes are added
// at the end. generic/linear_batch.inl.h does the same for many rows, number for number. Needs
// generic/weight_codes.inl.h and the vocabulary of isa/codes_*.h.
#pragma once

#include "kernels/generic/weight_codes.inl.h"

namespace winnow {
namespace {

// Into the second-level cache: the first has too few lines under way at a time for what memory
// gives (AVX-512: 10.5 GB/s from one thread where this gives 12).
constexpr int kPrefetchBytes = 4096;
// Products of R input rows with weight rows.
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
    Float8 sums[R];
    for (int r = 0; r < R; ++r) sums[r] = float8_zero();
    int64_t group = 0;
    for (; group + kSpanGroups <= groups_; group += kSpanGroups) {
      for (int at = 0; at < Type::kSpanBytes; at += 64)
        __builtin_prefetch(weight + kPrefetchBytes + at, 0, 2);
      add_span<kSpanGroups>(weight, group, sums);
      weight += Type::kSpanBytes;
    }
    if constexpr (Type::kPartSpans) add_part<kSpanGroups - 1>(weight, group, sums);
    for (int r = 0; r < R; ++r) out[r] = float8_sum(sums[r]);
  }

 private:
  static constexpr bool kSigned = Type::kBits == 8;

  // The groups after the last whole span: n of them, or fewer.
  template <int n>
  [[gnu::always_inline]] inline void add_part(const uint8_t* span, int64_t group,
                                              Float8 (&sums)[R]) const {
    if constexpr (n > 0) {
      if (groups_ - group == n) return add_span<n>(span, group, sums);
      add_part<n - 1>(span, group, sums);
    }
  }

  // The n groups of the span at `group`.
  template <int n>
  [[gnu::always_inline]] inline void add_span(const uint8_t* span, int64_t group,
                                              Float8 (&sums)[R]) const {
    alignas(32) float d[kMaxScales];
    alignas(32) float m[kMaxScales];
    Type::scales(span, n, d, m);
    Int8 first[R], last[R];
    four_dots<0, n>(span, group, first);
    four_dots<4, n>(span, group, last);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) {
      const Int8 low = int8_low_halves(first[r], last[r]);
      const Int8 high = int8_high_halves(first[r], last[r]);
      Float8 total;
      if constexpr (Type::kHalves) {
        total = add_dots<n, 0>(low, d, m, sums_[r] + group, float8_zero());
        total = add_dots<n, 8>(high, d, m, sums_[r] + groups_ + group, total);
      } else {
        total = add_dots<n, 0>(int8_add(low, high), d, m, sums_[r] + group, float8_zero());
      }
      sums[r] = float8_fma(load<n>(scales_[r] + group), total, sums[r]);
    }
  }

  template <int n>
  [[gnu::always_inline]] static inline Float8 load(const float* p) {
    return n == kSpanGroups ? float8_load(p) : float8_load_some(p, n);
  }

  // d * (dot - kZero * sum) + m * sum, of one group to a lane.
  template <int n, int kFirst>
  [[gnu::always_inline]] static inline Float8 add_dots(Int8 dots, const float* d, const float* m,
                                                       const float* code_sums, Float8 total) {
    if constexpr (Type::kZero != 0)
      dots = int8_less(dots, Type::kZero, int8_from(load<n>(code_sums)));
    const Float8 dot = float8_from(dots), scale = float8_load(d + kFirst);
    total = kFirst == 0 ? float8_mul(scale, dot) : float8_fma(scale, dot, total);
    if constexpr (Type::kMinimums)
      total = float8_fma(float8_load(m + kFirst), load<n>(code_sums), total);
    return total;
  }

  // Of groups [g, g + 4), as far as the span has them: the products of their first halves in lanes
  // 0 to 3, of their second halves in lanes 4 to 7.
  template <int g, int n>
  [[gnu::always_inline]] inline void four_dots(const uint8_t* span, int64_t group,
                                               Int8 (&joined)[R]) const {
    Int8 a[R], b[R], c[R], e[R];
    dots_of<g, n>(span, group, a);
    dots_of<g + 1, n>(span, group, b);
    dots_of<g + 2, n>(span, group, c);
    dots_of<g + 3, n>(span, group, e);
#pragma GCC unroll 2
    for (int r = 0; r < R; ++r) joined[r] = int8_join(a[r], b[r], c[r], e[r]);
  }
  template <int g, int n>
  [[gnu::always_inline]] inline void dots_of(const uint8_t* span, int64_t group,
                                             Int8 (&dots)[R]) const {
    if constexpr (g < n) {
      const Codes32 codes = Type::template codes<g>(span);
#pragma GCC unroll 2
      for (int r = 0; r < R; ++r)
        dots[r] = dot_group<kSigned>(codes, codes_[r] + (group + g) * kInputGroup);
    } else {
      for (int r = 0; r < R; ++r) dots[r] = int8_zero();
    }
  }

  int64_t groups_;
  const int16_t* codes_[R];
  const float* scales_[R];
  const float* sums_[R];
};

template <class Type, int R>
inline void generate_rows(const LinearTask& task, int64_t first_row) {
  const GenerateTile<Type, R> tile(task, first_row);
  for (int64_t output = 0; output < task.num_outputs; ++output) {
    float out[R];
    tile.multiply(reinterpret_cast<const uint8_t*>(task.weight + output * task.row_bytes), out);
    const float bias = task.bias == nullptr ? 0.0f : task.bias[output];
    for (int r = 0; r < R; ++r) task.y[(first_row + r) * task.y_stride + output] = out[r] + bias;
  }
}

}  // namespace
}  // namespace winnow
