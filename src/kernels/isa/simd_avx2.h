// The vector vocabulary for AVX2, FMA and F16C. For isa/ files only.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace winnow {
namespace {

struct Avx2 {
  using Vec = __m256;    // floats
  using Bits = __m256i;  // as many 32-bit integers
  using Mask = __m256;   // all ones or all zeros
  static constexpr int kLanes = 8;

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec set1(float value) { return _mm256_set1_ps(value); }
  static Vec load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
  // The first `count` lanes, 0 < count < kLanes; the others are zero, and their memory is not
  // touched.
  static Vec load_first(const float* p, int64_t count) {
    return _mm256_maskload_ps(p, first_lanes(count));
  }
  static void store_first(float* p, int64_t count, Vec v) {
    _mm256_maskstore_ps(p, first_lanes(count), v);
  }

  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec sub(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  static Vec mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static Vec div(Vec a, Vec b) { return _mm256_div_ps(a, b); }
  static Vec sqrt(Vec v) { return _mm256_sqrt_ps(v); }
  // a * b + c, rounded once.
  static Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
  // The larger; if a is NaN, b.
  static Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
  // x, but at least (at most) `bound`; NaN stays NaN.
  static Vec at_least(Vec x, Vec bound) { return _mm256_max_ps(bound, x); }
  static Vec at_most(Vec x, Vec bound) { return _mm256_min_ps(bound, x); }
  // Nearest integer, ties to even.
  static Vec round(Vec v) {
    return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // v * 2^n for whole numbers n; v and the result must be normal numbers.
  static Vec scale_exp2(Vec v, Vec n) {
    const Bits exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(v), exponent));
  }
  static float first(Vec v) { return _mm256_cvtss_f32(v); }
  // In a fixed order of lanes.
  static float sum(Vec v) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  // Requires that no lane is NaN.
  static float largest(Vec v) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }

  // a < b; false for NaN.
  static Mask less(Vec a, Vec b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static Vec select(Mask mask, Vec if_set, Vec otherwise) {
    return _mm256_blendv_ps(otherwise, if_set, mask);
  }
  // Lanes i with begin <= i < end.
  static Mask lanes_between(int begin, int end) {
    const Bits lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const Bits from = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(begin - 1));
    const Bits until = _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane);
    return _mm256_castsi256_ps(_mm256_and_si256(from, until));
  }

  static Bits load_bits(const uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store_bits(uint32_t* p, Bits v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
  }
  // low | high << 16. Requires low < 2^16.
  static Bits join_halves(Bits low, Bits high) {
    return _mm256_or_si256(low, _mm256_slli_epi32(high, 16));
  }
  // Each lane holds two neighbours, the first one in its low half.
  static void split_bf16(Bits pairs, Vec& first, Vec& second) {
    first = _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
    second = _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-0x10000)));
  }
  static void split_f16(Bits pairs, Vec& first, Vec& second) {
    const Vec low = _mm256_cvtph_ps(_mm256_castsi256_si128(pairs));
    const Vec high = _mm256_cvtph_ps(_mm256_extracti128_si256(pairs, 1));
    first = in_order(_mm256_shuffle_ps(low, high, 0x88));
    second = in_order(_mm256_shuffle_ps(low, high, 0xdd));
  }
  // 16-bit numbers, rounded to nearest even, in the low halves. NaN becomes quiet.
  static Bits to_bf16(Vec v) {
    const Bits bits = _mm256_castps_si256(v);
    const Bits odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const Bits bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const Bits quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const Bits is_nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    const Bits rounded = _mm256_add_epi32(bits, bias);
    return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  }
  static Bits to_f16(Vec v) {
    return _mm256_cvtepu16_epi32(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }

 private:
  static Bits first_lanes(int64_t count) {
    const Bits lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
  // Puts the 64-bit quarters that a shuffle within 128-bit halves leaves as 0 2 1 3 in order.
  static Vec in_order(Vec v) {
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
  }
};

}  // namespace
}  // namespace winnow
