// Sixteen outputs side by side: the vocabulary of generic/linear_prompt.inl.h on AVX-512 with VNNI.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/load_bytes.h"

namespace winnow {
namespace {

constexpr int kLanes = 16;
// 16 independent sums: the dot product takes 5 cycles and two can start in each.
constexpr int kTileRows = 8;
constexpr int kTileVectors = 2;

using Vec = __m512;
using IntVec = __m512i;

inline Vec vec_zero() { return _mm512_setzero_ps(); }
inline Vec vec_load(const float* p) { return _mm512_loadu_ps(p); }
inline void vec_store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec vec_broadcast(const float* p) { return _mm512_set1_ps(*p); }
inline Vec vec_add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec vec_mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec vec_fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec vec_from(IntVec v) { return _mm512_cvtepi32_ps(v); }
inline IntVec int_zero() { return _mm512_setzero_si512(); }

// Adds to `dots` the products of kSteps * 2 columns: codes [kSteps][outputs of the tile][2] with
// the same columns of each row.
template <int kSteps, int kRows>
inline void tile_dot(const int16_t* codes, const int16_t* const* rows, int64_t col,
                     IntVec (&dots)[kRows][kTileVectors]) {
#pragma GCC unroll 16
  for (int step = 0; step < kSteps; ++step) {
    const int16_t* at = codes + step * kTileVectors * 32;
    const __m512i weights[kTileVectors] = {_mm512_load_si512(at), _mm512_load_si512(at + 32)};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto* pair = reinterpret_cast<const uint8_t*>(rows[r] + col + step * 2);
      const __m512i input = _mm512_set1_epi32(static_cast<int>(load_u32(pair)));
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v) {
        dots[r][v] = _mm512_dpwssd_epi32(dots[r][v], weights[v], input);
      }
    }
  }
}

}  // namespace
}  // namespace winnow
