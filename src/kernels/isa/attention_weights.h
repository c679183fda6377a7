// Softmax weights of attention, from f32 logits straight to bf16. For isa/ files of levels with
// AVX512-VBMI and AVX512-BF16.
//
// A bf16 number is its exponent and 7 bits of mantissa, so 128 * (127 + x) as a whole number is
// nearly 2^x: right at whole x, and above it by a part of the mantissa that a table of 64 entries
// takes off. x has 8 bits behind the point. Against rounding the exact power (rms error .0017, at
// most 2^-8) that gives .0019 and at most 2^-7.4, in 11 instructions for 32 weights instead of 34
// with exp2_weight.
#pragma once

#include <cstdint>

#include "kernels/generic/exp2.inl.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

// Logits come in units of log2 times this, so that they are whole numbers after rounding.
constexpr float kLogitUnit = 256;
// References up to it are exact beside the bias of the exponent.
constexpr float kMaxReference = 0x1p15F;

// By how much the linear mantissa is too large, for each 64th of an octave, in 256ths.
alignas(64) constexpr uint8_t kMantissaExcess[64] = {
    0,  2,  3,  4,  5,  6,  8,  8,  10, 10, 11, 12, 13, 14, 15, 16, 16, 17, 18, 18, 19, 19,
    20, 20, 21, 21, 21, 22, 22, 22, 22, 22, 22, 23, 23, 23, 22, 22, 22, 22, 22, 21, 21, 21,
    20, 20, 19, 19, 18, 17, 17, 16, 15, 14, 13, 12, 11, 10, 9,  7,  6,  5,  3,  2};

struct SoftmaxWeights {
  // What of() adds to the logits of a row for weights relative to 2^reference. Infinity, with
  // which every logit is unfit, where the reference does not suit.
  static __m512 origin_of(__m512 reference) {
    const __m512 magnitude =
        _mm512_max_ps(reference, _mm512_sub_ps(_mm512_setzero_ps(), reference));
    // The 1 rounds the last bit.
    const __m512 origin = _mm512_sub_ps(_mm512_set1_ps(127 * kLogitUnit + 1),
                                        _mm512_mul_ps(reference, _mm512_set1_ps(kLogitUnit)));
    // Half-open towards NaN: what does not compare as small is not.
    return Avx512::select(Avx512::less(magnitude, _mm512_set1_ps(kMaxReference)), origin,
                          _mm512_set1_ps(__builtin_inff()));
  }

  // The weights of 32 logits. Those below 2^-126 count as zero. Gathers in `bits` what may_be_unfit
  // looks at: an unfit logit has no right weight here.
  [[gnu::always_inline]] static inline __m512i of(const float* logits, const float* next_16,
                                                  __m512 origin, __m512i& bits) {
    const __m512i order = _mm512_load_si512(kInOrder);
    const __m512i excess = _mm512_load_si512(kMantissaExcess);
    const __m512i first = fixed_point(logits, origin);
    const __m512i second = fixed_point(next_16, origin);
    bits = _mm512_or_si512(_mm512_or_si512(bits, first), second);
    // Negative numbers become zero.
    const __m512i x = _mm512_permutexvar_epi64(order, _mm512_packus_epi32(first, second));
    const __m512i over =
        _mm512_maskz_permutexvar_epi8(0x5555555555555555U, _mm512_srli_epi16(x, 2), excess);
    return _mm512_srli_epi16(_mm512_sub_epi16(x, over), 1);
  }

  // False only if no logit that left its bits was unfit.
  static bool may_be_unfit(__m512i bits) {
    return _mm512_test_epi32_mask(bits, _mm512_set1_epi32(~0x7fff)) != 0;
  }
  // Whether any of 16 logits is: it is NaN, or its weight would be 2 or more, or its distance from
  // the reference is no 32-bit number. Minus infinity is fit.
  static bool any_unfit(const float* logits, __m512 origin) {
    const __m512 logit = _mm512_load_ps(logits);
    const __m512 x = _mm512_add_ps(logit, origin);
    const auto hidden = Avx512::less(logit, _mm512_set1_ps(-__FLT_MAX__));
    const auto small = Avx512::less(x, _mm512_set1_ps(0x7fff.8p0F));
    const auto in_range = Avx512::less(_mm512_set1_ps(-0x1p31F), x);
    return (hidden | (small & in_range)) != 0xffff;
  }

 private:
  // The pack takes turns between its operands every 64 bits.
  alignas(64) static constexpr int64_t kInOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};

  [[gnu::always_inline]] static inline __m512i fixed_point(const float* logits, __m512 origin) {
    return _mm512_cvtps_epi32(_mm512_add_ps(_mm512_load_ps(logits), origin));
  }
};

}  // namespace
}  // namespace winnow
