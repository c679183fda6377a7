// 32 weight codes side by side in two 128-bit registers, and 8 float lanes: the vocabulary of
// generic/weight_codes.inl.h and generic/linear_generate.inl.h on NEON.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/isa/load_bytes.h"

namespace winnow {
namespace {

struct Codes32 {
  uint8x16_t low, high;
};
struct Float8 {
  float32x4_t low, high;
};
struct Int8 {  // 8 lanes of int32
  int32x4_t low, high;
};

inline Codes32 codes_load(const uint8_t* p) { return {vld1q_u8(p), vld1q_u8(p + 16)}; }
// Low nibbles of 16 bytes, then their high nibbles.
inline Codes32 codes_nibbles(const uint8_t* p) {
  const uint8x16_t bytes = vld1q_u8(p);
  return {vandq_u8(bytes, vdupq_n_u8(15)), vshrq_n_u8(bytes, 4)};
}
inline Codes32 codes_and(Codes32 a, int mask) {
  const uint8x16_t masks = vdupq_n_u8(static_cast<uint8_t>(mask));
  return {vandq_u8(a.low, masks), vandq_u8(a.high, masks)};
}
// (byte >> shift) & mask.
template <int kShift>
inline Codes32 codes_field(Codes32 bytes, int mask) {
  if constexpr (kShift == 0) {
    return codes_and(bytes, mask);
  } else {
    return codes_and({vshrq_n_u8(bytes.low, kShift), vshrq_n_u8(bytes.high, kShift)}, mask);
  }
}
// ((byte >> shift) & mask) << left; the field must stay inside its byte.
template <int kShift, int kLeft>
inline Codes32 codes_field_at(Codes32 bytes, int mask) {
  const Codes32 field = codes_field<kShift>(bytes, mask);
  return {vshlq_n_u8(field.low, kLeft), vshlq_n_u8(field.high, kLeft)};
}
inline Codes32 codes_or(Codes32 a, Codes32 b) {
  return {vorrq_u8(a.low, b.low), vorrq_u8(a.high, b.high)};
}
// Bit i of the little-endian word at p, as `value` in byte i.
inline Codes32 codes_bits(const uint8_t* p, int value) {
  const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ULL));
  const uint8x16_t values = vdupq_n_u8(static_cast<uint8_t>(value));
  const uint8x16_t low = vcombine_u8(vdup_n_u8(p[0]), vdup_n_u8(p[1]));
  const uint8x16_t high = vcombine_u8(vdup_n_u8(p[2]), vdup_n_u8(p[3]));
  return {vandq_u8(vtstq_u8(low, bit), values), vandq_u8(vtstq_u8(high, bit), values)};
}
// table[code] for codes below 16.
inline Codes32 codes_lookup(Codes32 codes, const int8_t* table) {
  const uint8x16_t values = vreinterpretq_u8_s8(vld1q_s8(table));
  return {vqtbl1q_u8(values, codes.low), vqtbl1q_u8(values, codes.high)};
}

template <bool kSigned>
inline int16x8_t widen(uint8x8_t codes) {
  return kSigned ? vmovl_s8(vreinterpret_s8_u8(codes)) : vreinterpretq_s16_u16(vmovl_u8(codes));
}
// 16 columns of a group: the input's codes times the weight's, two columns in each lane.
template <bool kSigned>
inline Int8 dot_sixteen(uint8x16_t codes, const int16_t* input) {
  const int16x8_t a = widen<kSigned>(vget_low_u8(codes)), b = widen<kSigned>(vget_high_u8(codes));
  const int16x8_t x = vld1q_s16(input), y = vld1q_s16(input + 8);
  return {vmlal_s16(vmull_s16(vget_low_s16(a), vget_low_s16(x)), vget_low_s16(b), vget_low_s16(y)),
          vmlal_high_s16(vmull_high_s16(a, x), b, y)};
}
// A group's codes times the input's. Lanes 0 to 3: sums over columns 0 to 15; lanes 4 to 7: over
// columns 16 to 31.
template <bool kSigned>
inline Int8 dot_group(Codes32 codes, const int16_t* input) {
  const Int8 low = dot_sixteen<kSigned>(codes.low, input);
  const Int8 high = dot_sixteen<kSigned>(codes.high, input + 16);
  return {vaddq_s32(low.low, low.high), vaddq_s32(high.low, high.high)};
}
// The columns stay in order.
constexpr bool kSplitsEvenOdd = false;
inline void split_even_odd(int16_t* /*group*/) {}
// The same columns of eight outputs: bytes become 16-bit numbers less kZero, and `panel` gets
// [16 steps][eight outputs][2 columns], steps step_stride numbers apart.
template <bool kSigned, int kZero>
inline void store_four_outputs(const uint8x16_t (&codes)[4], int16_t* panel, int step_stride) {
  const uint32x4_t a = vreinterpretq_u32_u8(codes[0]), b = vreinterpretq_u32_u8(codes[1]);
  const uint32x4_t c = vreinterpretq_u32_u8(codes[2]), d = vreinterpretq_u32_u8(codes[3]);
  const uint64x2_t ab[2] = {vreinterpretq_u64_u32(vtrn1q_u32(a, b)),
                            vreinterpretq_u64_u32(vtrn2q_u32(a, b))};
  const uint64x2_t cd[2] = {vreinterpretq_u64_u32(vtrn1q_u32(c, d)),
                            vreinterpretq_u64_u32(vtrn2q_u32(c, d))};
  // Four columns of each output: 0 to 3, 4 to 7, ...
  const uint64x2_t quads[4] = {vtrn1q_u64(ab[0], cd[0]), vtrn1q_u64(ab[1], cd[1]),
                               vtrn2q_u64(ab[0], cd[0]), vtrn2q_u64(ab[1], cd[1])};
  const int16x8_t zeros = vdupq_n_s16(kZero);
  for (int i = 0; i < 4; ++i) {
    const uint16x8_t columns = vreinterpretq_u16_u64(quads[i]);
    const uint8x8_t first = vget_low_u8(vreinterpretq_u8_u16(vuzp1q_u16(columns, columns)));
    const uint8x8_t second = vget_low_u8(vreinterpretq_u8_u16(vuzp2q_u16(columns, columns)));
    vst1q_s16(panel + 2 * i * step_stride, vsubq_s16(widen<kSigned>(first), zeros));
    vst1q_s16(panel + (2 * i + 1) * step_stride, vsubq_s16(widen<kSigned>(second), zeros));
  }
}
template <bool kSigned, int kZero>
inline void store_eight_outputs(const Codes32 (&codes)[8], int16_t* panel, int step_stride) {
  for (int first = 0; first < 8; first += 4) {
    const Codes32* at = codes + first;
    const uint8x16_t low[4] = {at[0].low, at[1].low, at[2].low, at[3].low};
    const uint8x16_t high[4] = {at[0].high, at[1].high, at[2].high, at[3].high};
    store_four_outputs<kSigned, kZero>(low, panel + 2 * first, step_stride);
    store_four_outputs<kSigned, kZero>(high, panel + 2 * first + 8 * step_stride, step_stride);
  }
}
// Lanes 0 to 3: the sums of lanes 0 to 3 of a, b, c and d; lanes 4 to 7: of their lanes 4 to 7.
inline Int8 int8_join(Int8 a, Int8 b, Int8 c, Int8 d) {
  return {vpaddq_s32(vpaddq_s32(a.low, b.low), vpaddq_s32(c.low, d.low)),
          vpaddq_s32(vpaddq_s32(a.high, b.high), vpaddq_s32(c.high, d.high))};
}
// Lanes 0 to 3 of a, then of b.
inline Int8 int8_low_halves(Int8 a, Int8 b) { return {a.low, b.low}; }
inline Int8 int8_high_halves(Int8 a, Int8 b) { return {a.high, b.high}; }
inline Int8 int8_zero() { return {vdupq_n_s32(0), vdupq_n_s32(0)}; }
inline Int8 int8_add(Int8 a, Int8 b) {
  return {vaddq_s32(a.low, b.low), vaddq_s32(a.high, b.high)};
}
// a - factor * b.
inline Int8 int8_less(Int8 a, int factor, Int8 b) {
  return {vmlsq_n_s32(a.low, b.low, factor), vmlsq_n_s32(a.high, b.high, factor)};
}

inline Float8 float8_set(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
inline Float8 float8_zero() { return float8_set(0); }
inline Float8 float8_load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
inline void float8_store(float* p, Float8 v) {
  vst1q_f32(p, v.low);
  vst1q_f32(p + 4, v.high);
}
// The first n floats, zeros in the other lanes; reads no further.
inline Float8 float8_load_some(const float* p, int n) {
  float staged[8] = {};
  for (int i = 0; i < n && i < 8; ++i) staged[i] = p[i];
  return float8_load(staged);
}
inline Float8 float8_add(Float8 a, Float8 b) {
  return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)};
}
inline Float8 float8_mul(Float8 a, Float8 b) {
  return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)};
}
inline Float8 float8_fma(Float8 a, Float8 b, Float8 c) {
  return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
}
// Of whole numbers.
inline Int8 int8_from(Float8 v) { return {vcvtq_s32_f32(v.low), vcvtq_s32_f32(v.high)}; }
inline Float8 float8_from(Int8 v) { return {vcvtq_f32_s32(v.low), vcvtq_f32_s32(v.high)}; }
// Eight rows of eight floats, row_stride apart, become columns.
inline void float8_transpose(const float* rows, int row_stride, float* to, int to_stride) {
  for (int first = 0; first < 8; first += 4) {
    for (int col = 0; col < 8; col += 4) {
      const float* at = rows + first * row_stride + col;
      const float32x4_t a = vld1q_f32(at), b = vld1q_f32(at + row_stride);
      const float32x4_t c = vld1q_f32(at + 2 * row_stride), d = vld1q_f32(at + 3 * row_stride);
      const float32x4_t ab[2] = {vtrn1q_f32(a, b), vtrn2q_f32(a, b)};
      const float32x4_t cd[2] = {vtrn1q_f32(c, d), vtrn2q_f32(c, d)};
      float* column = to + col * to_stride + first;
      for (int i = 0; i < 2; ++i) {
        vst1q_f32(column + i * to_stride, vcombine_f32(vget_low_f32(ab[i]), vget_low_f32(cd[i])));
        vst1q_f32(column + (i + 2) * to_stride,
                  vcombine_f32(vget_high_f32(ab[i]), vget_high_f32(cd[i])));
      }
    }
  }
}
inline float float8_sum(Float8 v) {
  const float32x4_t four = vaddq_f32(v.low, v.high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline Float8 float8_from_unsigned_bytes(uint64_t bytes) {
  const uint16x8_t wide = vmovl_u8(vcreate_u8(bytes));
  return {vcvtq_f32_u32(vmovl_u16(vget_low_u16(wide))),
          vcvtq_f32_u32(vmovl_u16(vget_high_u16(wide)))};
}
inline Float8 float8_from_signed_bytes(uint64_t bytes) {
  const int16x8_t wide = vmovl_s8(vcreate_s8(bytes));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide))),
          vcvtq_f32_s32(vmovl_s16(vget_high_s16(wide)))};
}

// Sixteen bytes, `low` first: those at even and those at odd places.
struct SplitBytes {
  uint64_t even, odd;
};
inline SplitBytes split_bytes(uint64_t low, uint64_t high) {
  const uint8x8_t a = vcreate_u8(low), b = vcreate_u8(high);
  return {vget_lane_u64(vreinterpret_u64_u8(vuzp1_u8(a, b)), 0),
          vget_lane_u64(vreinterpret_u64_u8(vuzp2_u8(a, b)), 0)};
}

inline Float8 float8_from_half_bits(uint16x8_t bits) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(bits))),
          vcvt_f32_f16(vreinterpret_f16_u16(vget_high_u16(bits)))};
}
inline float float_from_half(const uint8_t* p) {
  return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(load_u16(p)))), 0);
}
inline Float8 float8_from_halves(const uint8_t* p) {
  return float8_from_half_bits(vreinterpretq_u16_u8(vld1q_u8(p)));
}
inline Float8 float8_from_bfloats(const uint8_t* p) {
  const uint16x8_t bits = vreinterpretq_u16_u8(vld1q_u8(p));
  return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits), 16)),
          vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(bits), 16))};
}
// Half floats at p, p + stride, ...: n of them, zeros in the other lanes.
inline Float8 float8_gather_halves(const uint8_t* p, int stride, int n) {
  uint16_t staged[8] = {};
  for (int i = 0; i < n; ++i) staged[i] = load_u16(p + i * stride);
  return float8_from_half_bits(vld1q_u16(staged));
}

// One group of 32 inputs as int16 (linear_kernels.h).
struct InputGroup {
  float scale;
  int sum_low;   // of codes 0..15
  int sum_high;  // of codes 16..31
};
inline int quantize_sixteen(const float32x4_t* v, float inverse, int16_t* codes) {
  int32x4_t q[4];
  for (int i = 0; i < 4; ++i) q[i] = vcvtnq_s32_f32(vmulq_n_f32(v[i], inverse));  // nearest even
  const int16x8_t low = vcombine_s16(vqmovn_s32(q[0]), vqmovn_s32(q[1]));
  const int16x8_t high = vcombine_s16(vqmovn_s32(q[2]), vqmovn_s32(q[3]));
  vst1q_s16(codes, low);
  vst1q_s16(codes + 8, high);
  return vaddlvq_s16(low) + vaddlvq_s16(high);
}
inline InputGroup quantize_input_group(const float* x, int16_t* codes) {
  float32x4_t v[8];
  uint32x4_t most = vdupq_n_u32(0);
  for (int i = 0; i < 8; ++i) {
    v[i] = vld1q_f32(x + 4 * i);
    // As integers the magnitudes order like the floats, with infinity and NaN on top.
    most = vmaxq_u32(most, vandq_u32(vreinterpretq_u32_f32(v[i]), vdupq_n_u32(0x7fffffffU)));
  }
  const uint32_t most_bits = vmaxvq_u32(most);
  constexpr uint32_t kInfinityBits = 0x7f800000U, kSmallestBits = 0x0da24260U;  // 1e-30f
  if (most_bits >= kInfinityBits || most_bits < kSmallestBits) {
    for (int i = 0; i < 32; i += 8) vst1q_s16(codes + i, vdupq_n_s16(0));
    return {most_bits >= kInfinityBits ? __builtin_nanf("") : 0.0f, 0, 0};
  }
  float largest;
  std::memcpy(&largest, &most_bits, sizeof(largest));
  const int sum_low = quantize_sixteen(v, 32767.0f / largest, codes);
  const int sum_high = quantize_sixteen(v + 4, 32767.0f / largest, codes + 16);
  return {largest / 32767.0f, sum_low, sum_high};
}

}  // namespace
}  // namespace winnow
