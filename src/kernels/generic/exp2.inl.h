// exp2 for vectors: range reduction to [-0.5, 0.5] and a polynomial of degree 5 whose constant term
// is 1, so that exp2(0) is exactly 1. Relative error below 3e-7. NaN stays NaN. Include inside isa/
// files only.
#pragma once

namespace winnow {
namespace {

// 2^n * 2^f as scale_exp2 of the polynomial. Requires -126 <= x <= 127 or NaN.
template <class S>
[[gnu::always_inline]] inline typename S::Vec exp2_in_range(typename S::Vec x) {
  const auto n = S::round(x);
  const auto f = S::sub(x, n);
  auto p = S::fma(S::set1(0x1.5bba14p-10F), f, S::set1(0x1.3cea88p-7F));
  p = S::fma(p, f, S::set1(0x1.c6b752p-5F));
  p = S::fma(p, f, S::set1(0x1.ebf9bcp-3F));
  p = S::fma(p, f, S::set1(0x1.62e42ap-1F));
  p = S::fma(p, f, S::set1(1.0F));
  return S::scale_exp2(p, n);
}

// For any x: results above 2^127 are held there, and those below 2^-126 at 2^-126.
template <class S>
[[gnu::always_inline]] inline typename S::Vec exp2_held(typename S::Vec x) {
  return exp2_in_range<S>(S::at_most(S::at_least(x, S::set1(-126.0F)), S::set1(127.0F)));
}

// For x <= 0: results below 2^-126 are exactly zero, that of minus infinity too.
template <class S>
[[gnu::always_inline]] inline typename S::Vec exp2_weight(typename S::Vec x) {
  const auto vanishes = S::less(x, S::set1(-126.0F));
  const auto power = exp2_in_range<S>(S::at_least(x, S::set1(-126.0F)));
  return S::select(vanishes, S::zero(), power);
}

// tanh(x) with absolute error below 5e-7.
template <class S>
[[gnu::always_inline]] inline typename S::Vec tanh(typename S::Vec x) {
  // 1 - 2 / (e^2x + 1)
  const auto power = exp2_held<S>(S::mul(x, S::set1(2.885390081777927F)));
  return S::sub(S::set1(1.0F), S::div(S::set1(2.0F), S::add(power, S::set1(1.0F))));
}

}  // namespace
}  // namespace winnow
