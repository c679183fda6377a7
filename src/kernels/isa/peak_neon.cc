#include <arm_neon.h>

#include "kernels/generic/peak.inl.h"

namespace winnow {
namespace {

struct F32 {
  using Vector = float32x4_t;
  static void hide(Vector& v) { asm volatile("" : "+w"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) { return vfmaq_f32(sum, a, b); }
};
struct Int8 {
  using Vector = int32x4_t;
  static void hide(Vector& v) { asm volatile("" : "+w"(v)); }
  static Vector mul_add(Vector sum, Vector a, Vector b) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(a), vreinterpretq_s8_s32(b));
  }
};
constexpr PeakLoop kLoops[] = {{"f32", kSums * 4, peak_loop<F32>},
                               {"int8", kSums * 16, peak_loop<Int8>},
                               {nullptr, 0, nullptr}};

}  // namespace

const PeakLoop* peak_loops_neon() { return kLoops; }

}  // namespace winnow
