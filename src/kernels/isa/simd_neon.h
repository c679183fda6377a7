// The vector vocabulary for Armv8.2 NEON with fp16; simd_avx2.h says what each word promises. For
// isa/ files only.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace winnow {
namespace {

struct Neon {
  using Vec = float32x4_t;
  using Bits = uint32x4_t;
  using Mask = uint32x4_t;
  static constexpr int kLanes = 4;

  static Vec zero() { return vdupq_n_f32(0); }
  static Vec set1(float value) { return vdupq_n_f32(value); }
  static Vec load(const float* p) { return vld1q_f32(p); }
  static void store(float* p, Vec v) { vst1q_f32(p, v); }
  static Vec load_first(const float* p, int64_t count) {
    float lanes[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) lanes[i] = p[i];
    return vld1q_f32(lanes);
  }
  static void store_first(float* p, int64_t count, Vec v) {
    float lanes[kLanes];
    vst1q_f32(lanes, v);
    for (int64_t i = 0; i < count; ++i) p[i] = lanes[i];
  }

  static Vec add(Vec a, Vec b) { return vaddq_f32(a, b); }
  static Vec sub(Vec a, Vec b) { return vsubq_f32(a, b); }
  static Vec mul(Vec a, Vec b) { return vmulq_f32(a, b); }
  static Vec div(Vec a, Vec b) { return vdivq_f32(a, b); }
  static Vec sqrt(Vec v) { return vsqrtq_f32(v); }
  static Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
  static Vec max(Vec a, Vec b) { return vmaxnmq_f32(a, b); }
  static Vec at_least(Vec x, Vec bound) { return vmaxq_f32(x, bound); }
  static Vec at_most(Vec x, Vec bound) { return vminq_f32(x, bound); }
  static Vec round(Vec v) { return vrndnq_f32(v); }
  static Vec scale_exp2(Vec v, Vec n) {
    const int32x4_t exponent = vshlq_n_s32(vcvtnq_s32_f32(n), 23);
    return vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(v), exponent));
  }
  static float first(Vec v) { return vgetq_lane_f32(v, 0); }
  static float sum(Vec v) { return vaddvq_f32(v); }
  static float largest(Vec v) { return vmaxvq_f32(v); }

  static Mask less(Vec a, Vec b) { return vcltq_f32(a, b); }
  static Vec select(Mask mask, Vec if_set, Vec otherwise) {
    return vbslq_f32(mask, if_set, otherwise);
  }
  static Mask lanes_between(int begin, int end) {
    const int32_t numbers[kLanes] = {0, 1, 2, 3};
    const int32x4_t lane = vld1q_s32(numbers);
    return vandq_u32(vcgeq_s32(lane, vdupq_n_s32(begin)), vcltq_s32(lane, vdupq_n_s32(end)));
  }

  static Bits load_bits(const uint32_t* p) { return vld1q_u32(p); }
  static void store_bits(uint32_t* p, Bits v) { vst1q_u32(p, v); }
  static Bits join_halves(Bits low, Bits high) { return vorrq_u32(low, vshlq_n_u32(high, 16)); }
  static void split_bf16(Bits pairs, Vec& first, Vec& second) {
    first = vreinterpretq_f32_u32(vshlq_n_u32(pairs, 16));
    second = vreinterpretq_f32_u32(vandq_u32(pairs, vdupq_n_u32(0xffff0000U)));
  }
  static void split_f16(Bits pairs, Vec& first, Vec& second) {
    first = vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(pairs)));
    second = vcvt_f32_f16(vreinterpret_f16_u16(vshrn_n_u32(pairs, 16)));
  }
  static Bits to_bf16(Vec v) {
    const Bits bits = vreinterpretq_u32_f32(v);
    const Bits odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const Bits rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const Bits quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    const Mask is_number = vceqq_f32(v, v);
    return vshrq_n_u32(vbslq_u32(is_number, rounded, quiet), 16);
  }
  static Bits to_f16(Vec v) { return vmovl_u16(vreinterpret_u16_f16(vcvt_f16_f32(v))); }
};

}  // namespace
}  // namespace winnow
