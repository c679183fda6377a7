#include <immintrin.h>

#include "kernels/generic/peak.inl.h"

namespace winnow {
namespace {

struct Bf16 {
  using Vector = __m512;
  static void hide(Vector& v) { asm volatile("" : "+v"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) {
    return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
  }
};
constexpr PeakLoop kLoops[] = {{"bf16", kSums * 32, peak_loop<Bf16>}, {nullptr, 0, nullptr}};

}  // namespace

const PeakLoop* peak_loops_avx512bf16() { return kLoops; }

}  // namespace winnow
