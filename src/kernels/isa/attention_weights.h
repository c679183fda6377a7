// Softmax weights of attention, from f32 logits straight to bf16. For isa/ files of levels with
// AVX512-VBMI and AVX512-BF16.
//
// A bf16 number is its exponent and 7 bits of mantissa, so 128 * (127 + x) as a whole number is
// nearly 2^x: right at whole x, and above it by a part of the mantissa that a table of 64 entries
// takes off. x has 8 bits behind the point. Against rounding the exact power (rms error .0017, at
// most 2^-8) that gives .0019 and at most 2^-7.4, in 16 instructions for 32 weights instead of 34
// with exp2_weight.
#pragma once

#include <cstdint>

#include "kernels/generic/exp2.inl.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

// Floats around it are multiples of 2^-8.
constexpr float kFixedPoint = 0x1.8p15F;
constexpr int32_t kFixedPointBits = 0x47400000;
// The references that origin_of takes are whole numbers below it.
constexpr float kMaxReference = 0x1p22F;

// By how much the linear mantissa is too large, for each 64th of an octave, in 256ths.
alignas(64) constexpr uint8_t kMantissaExcess[64] = {
    0,  2,  3,  4,  5,  6,  8,  8,  10, 10, 11, 12, 13, 14, 15, 16, 16, 17, 18, 18, 19, 19,
    20, 20, 21, 21, 21, 22, 22, 22, 22, 22, 22, 23, 23, 23, 22, 22, 22, 22, 22, 21, 21, 21,
    20, 20, 19, 19, 18, 17, 17, 16, 15, 14, 13, 12, 11, 10, 9,  7,  6,  5,  3,  2};

struct SoftmaxWeights {
  // What of() adds to the logits of a row for weights relative to 2^reference. Infinity, with
  // which every weight comes out too large, where the reference does not suit.
  static __m512 origin_of(__m512 reference) {
    const __m512 magnitude =
        _mm512_max_ps(reference, _mm512_sub_ps(_mm512_setzero_ps(), reference));
    const __m512 remainder = _mm512_sub_ps(reference, Avx512::round(reference));
    const __m512 too_large = _mm512_set1_ps(__builtin_inff());
    const __m512 origin = _mm512_sub_ps(_mm512_set1_ps(kFixedPoint), reference);
    // Half-open towards NaN: what does not compare as suitable is not.
    const auto small = Avx512::less(magnitude, _mm512_set1_ps(kMaxReference));
    const auto whole = Avx512::less(_mm512_mul_ps(remainder, remainder), _mm512_set1_ps(0x1p-60F));
    return Avx512::select(small, Avx512::select(whole, origin, too_large), too_large);
  }

  // The weights of 32 logits. Those below 2^-126 count as zero, those of minus infinity are; NaN
  // stays NaN. Weights of 2 or more set bit 15 of a lane of `large`, and so does NaN.
  [[gnu::always_inline]] static inline __m512i of(const float* logits, const float* next_16,
                                                  __m512 origin, __m512i& large) {
    // The 1 rounds the last bit.
    const __m512i zero = _mm512_set1_epi32(kFixedPointBits - 127 * 256 - 1);
    const __m512i order = _mm512_load_si512(kInOrder);
    const __m512i excess = _mm512_load_si512(kMantissaExcess);
    const auto fixed_point = [&](const float* from) {
      // The second operand where either is NaN. What lies far below the reference would come out
      // negative, and wrap.
      const __m512 x =
          _mm512_max_ps(_mm512_setzero_ps(), _mm512_add_ps(_mm512_load_ps(from), origin));
      // NaN may have a sign, and must come out large.
      const __m512i bits = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
      return _mm512_sub_epi32(bits, zero);
    };
    const __m512i packed = _mm512_packus_epi32(fixed_point(logits), fixed_point(next_16));
    const __m512i x = _mm512_permutexvar_epi64(order, packed);
    large = _mm512_or_si512(large, x);
    const __m512i over =
        _mm512_maskz_permutexvar_epi8(0x5555555555555555U, _mm512_srli_epi16(x, 2), excess);
    return _mm512_srli_epi16(_mm512_sub_epi16(x, over), 1);
  }

 private:
  // The pack takes turns between its operands every 64 bits.
  alignas(64) static constexpr int64_t kInOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
};

}  // namespace
}  // namespace winnow
