// Eight outputs side by side: the vocabulary of generic/linear_prompt.inl.h on AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace winnow {
namespace {

constexpr int kLanes = 8;
constexpr int kTileRows = 4;
constexpr int kTileVectors = 2;
// Products of 8-bit codes overflow the 16-bit sums of this level: such codes are cut into two
// planes of 4 bits.
constexpr bool kNibblePlanes = true;
constexpr bool kUnsignedCodes = true;  // the weight's codes are unsigned, the input's signed

using Vec = __m256;
using IntVec = __m256i;

inline Vec vec_zero() { return _mm256_setzero_ps(); }
inline Vec vec_load(const float* p) { return _mm256_loadu_ps(p); }
inline void vec_store(float* p, Vec v) { _mm256_storeu_ps(p, v); }
inline Vec vec_broadcast(const float* p) { return _mm256_broadcast_ss(p); }
inline Vec vec_add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
inline Vec vec_mul(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
inline Vec vec_fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
inline Vec vec_from(IntVec v) { return _mm256_cvtepi32_ps(v); }

inline __m256i broadcast_codes(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof(four));
  return _mm256_set1_epi32(four);
}

// Keeps the compiler from regrouping a chain of sums: it would hold all products at once and spill
// them.
inline void pin(__m256i& v) { asm("" : "+x"(v)); }

// Adds to `dots` the products of kSteps * 4 columns: codes [kSteps][outputs of the tile][4] with
// the same columns of each row. Sums stay in 16 bits for as long as codes of kBits bits allow: 2 *
// 15 * 127 * 8 and 2 * 63 * 127 * 2 fit.
template <int kSteps, int kBits, int kRows>
inline void tile_dot(const uint8_t* codes, const int8_t* const* rows, int64_t col, int unit,
                     IntVec (&dots)[kRows][kTileVectors]) {
  constexpr int kAllowed = kBits <= 4 ? 8 : kBits == 5 ? 4 : 2;
  constexpr int kRun = kAllowed < kSteps ? kAllowed : kSteps;
  const __m256i units = _mm256_set1_epi16(static_cast<int16_t>(unit));
#pragma GCC unroll 4
  for (int start = 0; start < kSteps; start += kRun) {
    __m256i sums[kRows][kTileVectors];
#pragma GCC unroll 8
    for (int step = start; step < start + kRun; ++step) {
      const __m256i* at = reinterpret_cast<const __m256i*>(codes) + step * kTileVectors;
      const __m256i weights[kTileVectors] = {_mm256_load_si256(at), _mm256_load_si256(at + 1)};
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256i input = broadcast_codes(rows[r] + col + step * 4);
#pragma GCC unroll 2
        for (int v = 0; v < kTileVectors; ++v) {
          const __m256i pairs = _mm256_maddubs_epi16(weights[v], input);
          sums[r][v] = step == start ? pairs : _mm256_add_epi16(sums[r][v], pairs);
          pin(sums[r][v]);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) {
        dots[r][v] = _mm256_add_epi32(dots[r][v], _mm256_madd_epi16(sums[r][v], units));
      }
    }
  }
}

inline IntVec int_zero() { return _mm256_setzero_si256(); }

}  // namespace
}  // namespace winnow
