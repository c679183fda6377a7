// The elementwise kernels over the vector vocabulary. A number's bits depend on its own row
// (rms_norm) or on itself alone. Include inside isa/ files only.
#pragma once

#include "kernels/elementwise.h"
#include "kernels/generic/exp2.inl.h"

namespace winnow {
namespace {

template <class S>
struct Elementwise {
  using Vec = typename S::Vec;

  static void rms_norm(const float* x, const float* weight, float eps, int64_t rows, int64_t width,
                       float* y) {
    for (int64_t row = 0; row < rows; ++row) {
      const float* in = x + row * width;
      float* out = y + row * width;
      const float mean = sum_of_squares(in, width) / static_cast<float>(width);
      const Vec factor = S::div(S::set1(1.0F), S::sqrt(S::set1(mean + eps)));
      const int64_t whole = width / S::kLanes * S::kLanes;
      for (int64_t i = 0; i < whole; i += S::kLanes) {
        const Vec scaled = S::mul(S::load(in + i), factor);
        S::store(out + i, S::mul(scaled, S::load(weight + i)));
      }
      if (const int64_t rest = width - whole; rest > 0) {
        const Vec scaled = S::mul(S::load_first(in + whole, rest), factor);
        S::store_first(out + whole, rest, S::mul(scaled, S::load_first(weight + whole, rest)));
      }
    }
  }

  static void rope(float* x, const float* cos_sin, int64_t rows, int64_t heads, int64_t head_dim,
                   int64_t rotary_dims) {
    const int64_t half = rotary_dims / 2;
    for (int64_t row = 0; row < rows; ++row) {
      const float* cosines = cos_sin + row * rotary_dims;
      for (int64_t head = 0; head < heads; ++head) {
        rotate(x + (row * heads + head) * head_dim, cosines, cosines + half, half);
      }
    }
  }

  static void gated_activation(Activation kind, const float* gate, const float* up, int64_t count,
                               float* out) {
    if (kind == Activation::kSilu) {
      map(gate, up, count, out, [](Vec g, Vec u) { return S::mul(silu(g), u); });
    } else {
      map(gate, up, count, out, [](Vec g, Vec u) { return S::mul(gelu_tanh(g), u); });
    }
  }

  static void add(const float* x, int64_t count, float* y) {
    map(x, y, count, y, [](Vec a, Vec b) { return S::add(b, a); });
  }

  static void soft_cap(float* x, int64_t count, float cap) {
    const Vec caps = S::set1(cap);
    const Vec inverse = S::set1(1 / cap);
    map(x, x, count, x,
        [=](Vec value, Vec) { return S::mul(caps, tanh<S>(S::mul(value, inverse))); });
  }

 private:
  static constexpr float kLog2E = 1.4426950408889634F;

  // out[i] = function(a[i], b[i]).
  template <class Function>
  [[gnu::always_inline]] static inline void map(const float* a, const float* b, int64_t count,
                                                float* out, Function function) {
    const int64_t whole = count / S::kLanes * S::kLanes;
    for (int64_t i = 0; i < whole; i += S::kLanes) {
      S::store(out + i, function(S::load(a + i), S::load(b + i)));
    }
    if (const int64_t rest = count - whole; rest > 0) {
      S::store_first(out + whole, rest,
                     function(S::load_first(a + whole, rest), S::load_first(b + whole, rest)));
    }
  }

  // Four chains of multiply-adds, joined in a fixed order.
  static float sum_of_squares(const float* x, int64_t width) {
    Vec sums[4] = {S::zero(), S::zero(), S::zero(), S::zero()};
    const int64_t unrolled = width / (4 * S::kLanes) * (4 * S::kLanes);
    for (int64_t i = 0; i < unrolled; i += 4 * S::kLanes) {
#pragma GCC unroll 4
      for (int chain = 0; chain < 4; ++chain) {
        const Vec value = S::load(x + i + chain * S::kLanes);
        sums[chain] = S::fma(value, value, sums[chain]);
      }
    }
    for (int64_t i = unrolled; i < width; i += S::kLanes) {
      const int64_t rest = width - i;
      const Vec value = rest < S::kLanes ? S::load_first(x + i, rest) : S::load(x + i);
      sums[0] = S::fma(value, value, sums[0]);
    }
    return S::sum(S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])));
  }

  static void rotate(float* head, const float* cosines, const float* sines, int64_t half) {
    const int64_t whole = half / S::kLanes * S::kLanes;
    Vec first, second;
    for (int64_t i = 0; i < whole; i += S::kLanes) {
      turn(S::load(head + i), S::load(head + half + i), S::load(cosines + i), S::load(sines + i),
           first, second);
      S::store(head + i, first);
      S::store(head + half + i, second);
    }
    if (const int64_t rest = half - whole; rest > 0) {
      turn(S::load_first(head + whole, rest), S::load_first(head + half + whole, rest),
           S::load_first(cosines + whole, rest), S::load_first(sines + whole, rest), first, second);
      S::store_first(head + whole, rest, first);
      S::store_first(head + half + whole, rest, second);
    }
  }

  // Rounded product by product, as ref/ does it: the bits are equal.
  [[gnu::always_inline]] static inline void turn(Vec a, Vec b, Vec cosine, Vec sine, Vec& first,
                                                 Vec& second) {
    first = S::sub(S::mul(a, cosine), S::mul(b, sine));
    second = S::add(S::mul(a, sine), S::mul(b, cosine));
  }

  // x * sigmoid(y) = x / (1 + exp(-y)).
  [[gnu::always_inline]] static inline Vec times_sigmoid(Vec x, Vec y) {
    const Vec power = exp2_held<S>(S::mul(y, S::set1(-kLog2E)));
    return S::div(x, S::add(S::set1(1.0F), power));
  }

  // x is held where the sigmoid has vanished, so that no infinity meets a zero.
  [[gnu::always_inline]] static inline Vec silu(Vec x) {
    const Vec held = S::at_least(x, S::set1(-100.0F));
    return times_sigmoid(held, held);
  }

  [[gnu::always_inline]] static inline Vec gelu_tanh(Vec x) {
    // 2 * sqrt(2 / pi) * (x + 0.044715 x^3)
    const Vec held = S::at_least(x, S::set1(-30.0F));
    const Vec inner =
        S::fma(S::mul(held, held), S::set1(0.0713548162726F), S::set1(1.5957691216057F));
    return times_sigmoid(held, S::mul(held, inner));
  }
};

}  // namespace
}  // namespace winnow
