// The vector vocabulary for AVX-512 F, BW, VL and DQ; simd_avx2.h says what each word promises. For
// isa/ files only.
#pragma once

// GCC 12 takes the deliberately undefined operands inside its own intrinsics for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

namespace winnow {
namespace {

struct Avx512 {
  using Vec = __m512;
  using Bits = __m512i;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec set1(float value) { return _mm512_set1_ps(value); }
  static Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static Vec load_first(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(below(static_cast<int>(count)), p);
  }
  static void store_first(float* p, int64_t count, Vec v) {
    _mm512_mask_storeu_ps(p, below(static_cast<int>(count)), v);
  }

  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  static Vec sqrt(Vec v) { return _mm512_sqrt_ps(v); }
  static Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
  static Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static Vec at_least(Vec x, Vec bound) { return _mm512_max_ps(bound, x); }
  static Vec at_most(Vec x, Vec bound) { return _mm512_min_ps(bound, x); }
  static Vec round(Vec v) {
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Vec scale_exp2(Vec v, Vec n) {
    const Bits exponent = _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(v), exponent));
  }
  static float first(Vec v) { return _mm512_cvtss_f32(v); }
  static float sum(Vec v) { return _mm512_reduce_add_ps(v); }
  static float largest(Vec v) { return _mm512_reduce_max_ps(v); }

  static Mask less(Vec a, Vec b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Vec select(Mask mask, Vec if_set, Vec otherwise) {
    return _mm512_mask_blend_ps(mask, otherwise, if_set);
  }
  static Mask lanes_between(int begin, int end) {
    return static_cast<Mask>(below(end) & ~below(begin));
  }

  static Bits load_bits(const uint32_t* p) { return _mm512_loadu_si512(p); }
  static void store_bits(uint32_t* p, Bits v) { _mm512_storeu_si512(p, v); }
  static Bits join_halves(Bits low, Bits high) {
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
  static void split_bf16(Bits pairs, Vec& first, Vec& second) {
    first = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
    second = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(-0x10000)));
  }
  static void split_f16(Bits pairs, Vec& first, Vec& second) {
    first = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(pairs));
    second = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(pairs, 16)));
  }
  static Bits to_bf16(Vec v) {
    const Bits bits = _mm512_castps_si512(v);
    const Bits odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const Bits bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const Bits quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
    const Mask is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const Bits rounded = _mm512_mask_blend_epi32(is_nan, _mm512_add_epi32(bits, bias), quiet);
    return _mm512_srli_epi32(rounded, 16);
  }
  static Bits to_f16(Vec v) {
    return _mm512_cvtepu16_epi32(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }

 private:
  // Lanes i < count, for any count.
  static Mask below(int count) {
    if (count <= 0) return 0;
    return count >= kLanes ? Mask{0xffff} : static_cast<Mask>((1U << count) - 1);
  }
};

}  // namespace
}  // namespace winnow
