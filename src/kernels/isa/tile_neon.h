// Four outputs side by side: the vocabulary of generic/linear_prompt.inl.h on NEON with the dot
// product.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace winnow {
namespace {

constexpr int kLanes = 4;
constexpr int kTileRows = 4;
constexpr int kTileVectors = 4;
constexpr bool kNibblePlanes = false;
constexpr bool kUnsignedCodes = false;  // both operands are signed; unsigned codes stay below 64

using Vec = float32x4_t;
using IntVec = int32x4_t;

inline Vec vec_zero() { return vdupq_n_f32(0); }
inline Vec vec_load(const float* p) { return vld1q_f32(p); }
inline void vec_store(float* p, Vec v) { vst1q_f32(p, v); }
inline Vec vec_broadcast(const float* p) { return vld1q_dup_f32(p); }
inline Vec vec_add(Vec a, Vec b) { return vaddq_f32(a, b); }
inline Vec vec_mul(Vec a, Vec b) { return vmulq_f32(a, b); }
inline Vec vec_fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
inline Vec vec_from(IntVec v) { return vcvtq_f32_s32(v); }
inline IntVec int_zero() { return vdupq_n_s32(0); }

// Adds to `dots` the products of kSteps * 4 columns: codes [kSteps][outputs of the tile][4] with
// the same columns of each row. Sums are 32 bits wide, so kBits does not matter and `unit` is
// always 1.
template <int kSteps, int kBits, int kRows>
inline void tile_dot(const uint8_t* codes, const int8_t* const* rows, int64_t col, int /*unit*/,
                     IntVec (&dots)[kRows][kTileVectors]) {
  static_assert(kSteps % 4 == 0);
#pragma GCC unroll 2
  for (int start = 0; start < kSteps; start += 4) {
    int8x16_t input[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) input[r] = vld1q_s8(rows[r] + col + start * 4);
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const auto* at = reinterpret_cast<const int8_t*>(codes) + (start * kTileVectors + v) * 16;
      const int8x16_t w0 = vld1q_s8(at), w1 = vld1q_s8(at + 16 * kTileVectors);
      const int8x16_t w2 = vld1q_s8(at + 32 * kTileVectors), w3 = vld1q_s8(at + 48 * kTileVectors);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        dots[r][v] = vdotq_laneq_s32(dots[r][v], w0, input[r], 0);
        dots[r][v] = vdotq_laneq_s32(dots[r][v], w1, input[r], 1);
        dots[r][v] = vdotq_laneq_s32(dots[r][v], w2, input[r], 2);
        dots[r][v] = vdotq_laneq_s32(dots[r][v], w3, input[r], 3);
      }
    }
  }
}

}  // namespace
}  // namespace winnow
