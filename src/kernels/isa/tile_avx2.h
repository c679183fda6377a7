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

inline __m256i broadcast_pair(const int16_t* p) {
  int32_t pair;
  std::memcpy(&pair, p, sizeof(pair));
  return _mm256_set1_epi32(pair);
}

// Keeps the compiler from regrouping a chain of sums: it would hold all products at once and spill
// them.
inline void pin(__m256i& v) { asm("" : "+x"(v)); }

inline IntVec int_zero() { return _mm256_setzero_si256(); }

// Adds to `dots` the products of kSteps * 2 columns: codes [kSteps][outputs of the tile][2] with
// the same columns of each row.
template <int kSteps, int kRows>
inline void tile_dot(const int16_t* codes, const int16_t* const* rows, int64_t col,
                     IntVec (&dots)[kRows][kTileVectors]) {
#pragma GCC unroll 16
  for (int step = 0; step < kSteps; ++step) {
    const __m256i* at = reinterpret_cast<const __m256i*>(codes) + step * kTileVectors;
    const __m256i weights[kTileVectors] = {_mm256_load_si256(at), _mm256_load_si256(at + 1)};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m256i input = broadcast_pair(rows[r] + col + step * 2);
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) {
        dots[r][v] = _mm256_add_epi32(dots[r][v], _mm256_madd_epi16(weights[v], input));
        pin(dots[r][v]);
      }
    }
  }
}

}  // namespace
}  // namespace winnow
