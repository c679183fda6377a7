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
constexpr bool kNibblePlanes = false;
constexpr bool kUnsignedCodes = true;  // the weight's codes are unsigned, the input's signed

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

// Adds to `dots` the products of kSteps * 4 columns: codes [kSteps][outputs of the tile][4] with
// the same columns of each row. Sums are 32 bits wide, so kBits does not matter and `unit` is
// always 1.
template <int kSteps, int kBits, int kRows>
inline void tile_dot(const uint8_t* codes, const int8_t* const* rows, int64_t col, int /*unit*/,
                     IntVec (&dots)[kRows][kTileVectors]) {
#pragma GCC unroll 8
  for (int step = 0; step < kSteps; ++step) {
    const uint8_t* at = codes + step * kTileVectors * 64;
    const __m512i weights[kTileVectors] = {_mm512_load_si512(at), _mm512_load_si512(at + 64)};
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto* four = reinterpret_cast<const uint8_t*>(rows[r] + col + step * 4);
      const __m512i input = _mm512_set1_epi32(static_cast<int>(load_u32(four)));
#pragma GCC unroll 2
      for (int v = 0; v < kTileVectors; ++v)
        dots[r][v] = _mm512_dpbusd_epi32(dots[r][v], weights[v], input);
    }
  }
}

}  // namespace
}  // namespace winnow
