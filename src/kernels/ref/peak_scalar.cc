#include "kernels/generic/peak.inl.h"

namespace winnow {
namespace {

struct F32 {
  using Vector = float;
#if defined(__aarch64__)
  static void hide(Vector& v) { asm volatile("" : "+w"(v)); }
#elif defined(__x86_64__)
  static void hide(Vector& v) { asm volatile("" : "+x"(v)); }
#else
  static void hide(Vector& v) { asm volatile("" : "+m"(v)); }
#endif
  static Vector mul_add(Vector sum, Vector a, Vector b) {
    hide(a);  // or the twelve equal products would be made once
    return sum + a * b;
  }
};
constexpr PeakLoop kLoops[] = {{"f32", kSums, peak_loop<F32>}, {nullptr, 0, nullptr}};

}  // namespace

const PeakLoop* peak_loops_scalar() { return kLoops; }

}  // namespace winnow
