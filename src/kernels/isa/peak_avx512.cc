#include <immintrin.h>

#include "kernels/generic/peak.inl.h"

namespace winnow {
namespace {

struct F32 {
  using Vector = __m512;
  static void hide(Vector& v) { asm volatile("" : "+v"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) { return _mm512_fmadd_ps(a, b, sum); }
};
struct Int16 {
  using Vector = __m512i;
  static void hide(Vector& v) { asm volatile("" : "+v"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) { return _mm512_dpwssd_epi32(sum, a, b); }
};
struct Int8 : Int16 {
  static Vector mul_add(Vector sum, Vector a, Vector b) { return _mm512_dpbusd_epi32(sum, a, b); }
};
constexpr PeakLoop kLoops[] = {{"f32", kSums * 16, peak_loop<F32>},
                               {"int16", kSums * 32, peak_loop<Int16>},
                               {"int8", kSums * 64, peak_loop<Int8>},
                               {nullptr, 0, nullptr}};

}  // namespace

const PeakLoop* peak_loops_avx512() { return kLoops; }

}  // namespace winnow
