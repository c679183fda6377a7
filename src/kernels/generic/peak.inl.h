// The loop behind every peak: independent sums, enough of them to hide the latency of an
// instruction. Requires an operation `Op` with a type Op::Vector and a function mul_add(sum, a, b).
#pragma once

#include <cstdint>

#include "kernels/peak_loops.h"

namespace winnow {
namespace {

template <class Op>
void peak_loop(int64_t rounds) {
  typename Op::Vector a = {}, b = {};
  typename Op::Vector s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {};
  typename Op::Vector s6 = {}, s7 = {}, s8 = {}, s9 = {}, s10 = {}, s11 = {};
  for (int64_t i = 0; i < rounds; ++i) {
    Op::hide(a);  // or the compiler would see that every product is the same
    s0 = Op::mul_add(s0, a, b), s1 = Op::mul_add(s1, a, b), s2 = Op::mul_add(s2, a, b);
    s3 = Op::mul_add(s3, a, b), s4 = Op::mul_add(s4, a, b), s5 = Op::mul_add(s5, a, b);
    s6 = Op::mul_add(s6, a, b), s7 = Op::mul_add(s7, a, b), s8 = Op::mul_add(s8, a, b);
    s9 = Op::mul_add(s9, a, b), s10 = Op::mul_add(s10, a, b), s11 = Op::mul_add(s11, a, b);
    Op::hide(s0), Op::hide(s1), Op::hide(s2), Op::hide(s3), Op::hide(s4), Op::hide(s5);
    Op::hide(s6), Op::hide(s7), Op::hide(s8), Op::hide(s9), Op::hide(s10), Op::hide(s11);
  }
}
constexpr int64_t kSums = 12;

}  // namespace
}  // namespace winnow
