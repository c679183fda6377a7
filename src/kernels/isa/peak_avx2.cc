#include <immintrin.h>

#include "kernels/generic/peak.inl.h"

namespace winnow {
namespace {

struct F32 {
  using Vector = __m256;
  static void hide(Vector& v) { asm volatile("" : "+x"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) { return _mm256_fmadd_ps(a, b, sum); }
};
struct Int16 {
  using Vector = __m256i;
  static void hide(Vector& v) { asm volatile("" : "+x"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) {
    // Written out, because the compiler would make the twelve equal products once.
    Vector product;
    asm volatile("vpmaddwd %1, %2, %0" : "=x"(product) : "x"(a), "x"(b));
    return _mm256_add_epi32(sum, product);
  }
};
constexpr PeakLoop kLoops[] = {{"f32", kSums * 8, peak_loop<F32>},
                               {"int16", kSums * 16, peak_loop<Int16>},
                               {nullptr, 0, nullptr}};

}  // namespace

const PeakLoop* peak_loops_avx2() { return kLoops; }

}  // namespace winnow
