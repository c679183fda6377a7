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

// Adds to `dots` the products of kSteps * 2 columns: codes [kSteps][outputs of the tile][2] with
// the same columns of each row.
template <int kSteps, int kRows>
inline void tile_dot(const int16_t* codes, const int16_t* const* rows, int64_t col,
                     IntVec (&dots)[kRows][kTileVectors]) {
  static_assert(kSteps % 4 == 0);
#pragma GCC unroll 4
  for (int start = 0; start < kSteps; start += 4) {
    int16x8_t input[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) input[r] = vld1q_s16(rows[r] + col + start * 2);
#pragma GCC unroll 4
    for (int v = 0; v < kTileVectors; ++v) {
      const int16_t* at = codes + (start * kTileVectors + v) * 8;
      const int16x4x2_t w0 = vld2_s16(at), w1 = vld2_s16(at + 8 * kTileVectors);
      const int16x4x2_t w2 = vld2_s16(at + 16 * kTileVectors),
                        w3 = vld2_s16(at + 24 * kTileVectors);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        IntVec sum = vmlal_laneq_s16(dots[r][v], w0.val[0], input[r], 0);
        sum = vmlal_laneq_s16(sum, w0.val[1], input[r], 1);
        sum = vmlal_laneq_s16(sum, w1.val[0], input[r], 2);
        sum = vmlal_laneq_s16(sum, w1.val[1], input[r], 3);
        sum = vmlal_laneq_s16(sum, w2.val[0], input[r], 4);
        sum = vmlal_laneq_s16(sum, w2.val[1], input[r], 5);
        sum = vmlal_laneq_s16(sum, w3.val[0], input[r], 6);
        dots[r][v] = vmlal_laneq_s16(sum, w3.val[1], input[r], 7);
      }
    }
  }
}

}  // namespace
}  // namespace winnow
