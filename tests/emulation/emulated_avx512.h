// The 512-bit instructions that src/kernels/isa uses, as plain loops over lanes: what they compute
// on every input, not how fast. They follow Intel's description of the operations, from which
// differences in rounding or in the handling of NaN and subnormal numbers would show in the tests.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace winnow {
namespace {

template <class Vector, class Lane>
struct LanesOf {
  static constexpr int kCount = static_cast<int>(sizeof(Vector) / sizeof(Lane));
  Lane at[kCount];
};
template <class Lane, class Vector>
LanesOf<Vector, Lane> lanes(Vector v) {
  return std::bit_cast<LanesOf<Vector, Lane>>(v);
}
template <class Vector, class Lane>
Vector vector_of(const LanesOf<Vector, Lane>& lanes) {
  return std::bit_cast<Vector>(lanes);
}

// Lane i is op(i).
template <class Vector, class Lane, class Op>
[[gnu::always_inline]] inline Vector make_lanes(Op op) {
  LanesOf<Vector, Lane> result;
  for (int i = 0; i < result.kCount; ++i) result.at[i] = op(i);
  return vector_of(result);
}
template <class Lane, class Vector, class Op>
[[gnu::always_inline]] inline Vector each_lane(Vector a, Op op) {
  const auto x = lanes<Lane>(a);
  return make_lanes<Vector, Lane>([&](int i) { return op(x.at[i]); });
}
template <class Lane, class Vector, class Op>
[[gnu::always_inline]] inline Vector each_lane(Vector a, Vector b, Op op) {
  const auto x = lanes<Lane>(a), y = lanes<Lane>(b);
  return make_lanes<Vector, Lane>([&](int i) { return op(x.at[i], y.at[i]); });
}

template <class Vector>
Vector load_unaligned(const void* p) {
  Vector v;
  std::memcpy(&v, p, sizeof(v));
  return v;
}
// The instruction stops the program where the address is not a multiple of 64.
inline void require_aligned(const void* p) {
  if (reinterpret_cast<uintptr_t>(p) % 64 != 0) std::abort();
}
constexpr bool in_mask(uint32_t mask, int lane) { return (mask >> lane & 1) != 0; }

// Memory.
inline __m512 emulated_loadu_ps(const void* p) { return load_unaligned<__m512>(p); }
inline __m512i emulated_loadu_si512(const void* p) { return load_unaligned<__m512i>(p); }
inline __m512 emulated_load_ps(const void* p) { return require_aligned(p), emulated_loadu_ps(p); }
inline __m512i emulated_load_si512(const void* p) {
  return require_aligned(p), emulated_loadu_si512(p);
}
inline void emulated_storeu_ps(void* p, __m512 v) { std::memcpy(p, &v, sizeof(v)); }
inline void emulated_storeu_si512(void* p, __m512i v) { std::memcpy(p, &v, sizeof(v)); }
inline void emulated_store_ps(void* p, __m512 v) { require_aligned(p), emulated_storeu_ps(p, v); }
inline void emulated_store_si512(void* p, __m512i v) {
  require_aligned(p), emulated_storeu_si512(p, v);
}
inline __m512 emulated_maskz_loadu_ps(__mmask16 mask, const float* p) {
  return make_lanes<__m512, float>([=](int i) { return in_mask(mask, i) ? p[i] : 0.0F; });
}
inline __m512i emulated_maskz_loadu_epi16(__mmask32 mask, const void* p) {
  const auto* bytes = static_cast<const char*>(p);
  return make_lanes<__m512i, uint16_t>([=](int i) {
    uint16_t lane = 0;
    if (in_mask(mask, i)) std::memcpy(&lane, bytes + 2 * i, sizeof(lane));
    return lane;
  });
}
inline void emulated_mask_storeu_ps(float* p, __mmask16 mask, __m512 v) {
  const auto x = lanes<float>(v);
  for (int i = 0; i < 16; ++i) {
    if (in_mask(mask, i)) p[i] = x.at[i];
  }
}

// Floats.
inline __m512 emulated_set1_ps(float value) {
  return make_lanes<__m512, float>([=](int) { return value; });
}
inline __m512 emulated_setzero_ps() { return emulated_set1_ps(0); }
inline __m512 emulated_add_ps(__m512 a, __m512 b) {
  return each_lane<float>(a, b, [](float x, float y) { return x + y; });
}
inline __m512 emulated_sub_ps(__m512 a, __m512 b) {
  return each_lane<float>(a, b, [](float x, float y) { return x - y; });
}
inline __m512 emulated_mul_ps(__m512 a, __m512 b) {
  return each_lane<float>(a, b, [](float x, float y) { return x * y; });
}
inline __m512 emulated_div_ps(__m512 a, __m512 b) {
  return each_lane<float>(a, b, [](float x, float y) { return x / y; });
}
inline __m512 emulated_fmadd_ps(__m512 a, __m512 b, __m512 c) {
  const auto x = lanes<float>(a), y = lanes<float>(b), z = lanes<float>(c);
  return make_lanes<__m512, float>([&](int i) { return std::fma(x.at[i], y.at[i], z.at[i]); });
}
inline __m512 emulated_sqrt_ps(__m512 a) {
  return each_lane<float>(a, [](float x) { return std::sqrt(x); });
}
// The second operand where either is NaN or both are zero.
inline __m512 emulated_max_ps(__m512 a, __m512 b) {
  return each_lane<float>(a, b, [](float x, float y) { return x > y ? x : y; });
}
inline __m512 emulated_min_ps(__m512 a, __m512 b) {
  return each_lane<float>(a, b, [](float x, float y) { return x < y ? x : y; });
}
// `control` asks for the nearest whole number, whatever else it says.
inline __m512 emulated_roundscale_ps(__m512 a, int control) {
  if ((control & 0xf7) != _MM_FROUND_TO_NEAREST_INT) std::abort();
  return each_lane<float>(a, [](float x) { return std::nearbyint(x); });
}
// In the order of the compilers' own sequence: halves onto each other.
template <class Op>
inline float reduce(__m512 a, Op op) {
  auto x = lanes<float>(a);
  for (int count = 8; count > 0; count /= 2) {
    for (int i = 0; i < count; ++i) x.at[i] = op(x.at[i], x.at[i + count]);
  }
  return x.at[0];
}
inline float emulated_reduce_add_ps(__m512 a) {
  return reduce(a, [](float x, float y) { return x + y; });
}
inline float emulated_reduce_max_ps(__m512 a) {
  return reduce(a, [](float x, float y) { return x > y ? x : y; });
}
inline float emulated_cvtss_f32(__m512 a) { return lanes<float>(a).at[0]; }
inline __mmask16 emulated_cmp_ps_mask(__m512 a, __m512 b, int relation) {
  if (relation != _CMP_LT_OQ && relation != _CMP_UNORD_Q) std::abort();
  const auto x = lanes<float>(a), y = lanes<float>(b);
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) {
    const bool unordered = std::isnan(x.at[i]) || std::isnan(y.at[i]);
    const bool holds = relation == _CMP_LT_OQ ? x.at[i] < y.at[i] : unordered;
    mask |= static_cast<uint32_t>(holds) << i;
  }
  return static_cast<__mmask16>(mask);
}
inline __m512 emulated_mask_blend_ps(__mmask16 mask, __m512 a, __m512 b) {
  const auto x = lanes<float>(a), y = lanes<float>(b);
  return make_lanes<__m512, float>([&](int i) { return in_mask(mask, i) ? y.at[i] : x.at[i]; });
}

// Integers.
inline __m512i emulated_set1_epi32(int value) {
  return make_lanes<__m512i, uint32_t>([=](int) { return static_cast<uint32_t>(value); });
}
inline __m512i emulated_setzero_si512() { return emulated_set1_epi32(0); }
inline __m512i emulated_add_epi32(__m512i a, __m512i b) {
  return each_lane<uint32_t>(a, b, [](uint32_t x, uint32_t y) { return x + y; });
}
inline __m512i emulated_sub_epi32(__m512i a, __m512i b) {
  return each_lane<uint32_t>(a, b, [](uint32_t x, uint32_t y) { return x - y; });
}
inline __m512i emulated_max_epi32(__m512i a, __m512i b) {
  return each_lane<int32_t>(a, b, [](int32_t x, int32_t y) { return x > y ? x : y; });
}
inline __m512i emulated_and_si512(__m512i a, __m512i b) {
  return each_lane<uint32_t>(a, b, [](uint32_t x, uint32_t y) { return x & y; });
}
inline __m512i emulated_or_si512(__m512i a, __m512i b) {
  return each_lane<uint32_t>(a, b, [](uint32_t x, uint32_t y) { return x | y; });
}
inline __m512i emulated_slli_epi32(__m512i a, unsigned count) {
  return each_lane<uint32_t>(a, [=](uint32_t x) { return count > 31 ? 0 : x << count; });
}
inline __m512i emulated_srli_epi32(__m512i a, unsigned count) {
  return each_lane<uint32_t>(a, [=](uint32_t x) { return count > 31 ? 0 : x >> count; });
}
inline __m512i emulated_mask_blend_epi32(__mmask16 mask, __m512i a, __m512i b) {
  const auto x = lanes<uint32_t>(a), y = lanes<uint32_t>(b);
  return make_lanes<__m512i, uint32_t>([&](int i) { return in_mask(mask, i) ? y.at[i] : x.at[i]; });
}
inline __m512i emulated_sub_epi16(__m512i a, __m512i b) {
  return each_lane<uint16_t>(a, b, [](int x, int y) { return static_cast<uint16_t>(x - y); });
}
inline __m512i emulated_srli_epi16(__m512i a, unsigned count) {
  return each_lane<uint16_t>(
      a, [=](uint16_t x) { return static_cast<uint16_t>(count > 15 ? 0 : x >> count); });
}
// Lanes with any bit of b set in a.
inline __mmask16 emulated_test_epi32_mask(__m512i a, __m512i b) {
  const auto x = lanes<uint32_t>(a), y = lanes<uint32_t>(b);
  uint32_t mask = 0;
  for (int i = 0; i < 16; ++i) mask |= static_cast<uint32_t>((x.at[i] & y.at[i]) != 0) << i;
  return static_cast<__mmask16>(mask);
}
// Signed numbers to unsigned ones half as wide, held at their ends: four of a, four of b, and so
// on.
inline __m512i emulated_packus_epi32(__m512i a, __m512i b) {
  const auto x = lanes<int32_t>(a), y = lanes<int32_t>(b);
  return make_lanes<__m512i, uint16_t>([&](int i) {
    const int at = i / 8 * 4 + i % 4;
    const int32_t value = i % 8 < 4 ? x.at[at] : y.at[at];
    return static_cast<uint16_t>(value < 0 ? 0 : value > 65535 ? 65535 : value);
  });
}
inline __m512i emulated_permutexvar_epi64(__m512i index, __m512i a) {
  const auto x = lanes<uint64_t>(a), from = lanes<uint64_t>(index);
  return make_lanes<__m512i, uint64_t>([&](int i) { return x.at[from.at[i] & 7]; });
}
inline __m512i emulated_maskz_permutexvar_epi8(__mmask64 mask, __m512i index, __m512i a) {
  const auto x = lanes<uint8_t>(a), from = lanes<uint8_t>(index);
  return make_lanes<__m512i, uint8_t>(
      [&](int i) { return (mask >> i & 1) != 0 ? x.at[from.at[i] & 63] : uint8_t{0}; });
}
// Lane i is lane (index & 15) of a, or of b where index bit 4 is set.
inline __m512i emulated_permutex2var_epi32(__m512i a, __m512i index, __m512i b) {
  const auto x = lanes<uint32_t>(a), y = lanes<uint32_t>(b), from = lanes<uint32_t>(index);
  return make_lanes<__m512i, uint32_t>([&](int i) {
    const uint32_t lane = from.at[i] & 15;
    return (from.at[i] & 16) != 0 ? y.at[lane] : x.at[lane];
  });
}
// Lanes of the low (or high) halves of each 128 bits of a and b, in turn.
template <class Lane, bool kHigh>
inline __m512i interleave(__m512i a, __m512i b) {
  constexpr int kLanes = 16 / sizeof(Lane);
  const auto x = lanes<Lane>(a), y = lanes<Lane>(b);
  return make_lanes<__m512i, Lane>([&](int i) {
    const int at = i / kLanes * kLanes + (kHigh ? kLanes / 2 : 0) + i % kLanes / 2;
    return i % 2 == 0 ? x.at[at] : y.at[at];
  });
}
inline __m512i emulated_unpacklo_epi16(__m512i a, __m512i b) {
  return interleave<uint16_t, false>(a, b);
}
inline __m512i emulated_unpackhi_epi16(__m512i a, __m512i b) {
  return interleave<uint16_t, true>(a, b);
}
inline __m512i emulated_unpacklo_epi32(__m512i a, __m512i b) {
  return interleave<uint32_t, false>(a, b);
}
inline __m512i emulated_unpackhi_epi32(__m512i a, __m512i b) {
  return interleave<uint32_t, true>(a, b);
}
inline __m512i emulated_unpacklo_epi64(__m512i a, __m512i b) {
  return interleave<uint64_t, false>(a, b);
}
inline __m512i emulated_unpackhi_epi64(__m512i a, __m512i b) {
  return interleave<uint64_t, true>(a, b);
}
// Lane i is lane (index & 15).
inline __m512 emulated_permutexvar_ps(__m512i index, __m512 a) {
  const auto x = lanes<float>(a);
  const auto from = lanes<uint32_t>(index);
  return make_lanes<__m512, float>([&](int i) { return x.at[from.at[i] & 15]; });
}
// Each lane of `sum` gains the products of two neighbouring 16-bit numbers; it wraps.
inline __m512i emulated_dpwssd_epi32(__m512i sum, __m512i a, __m512i b) {
  const auto x = lanes<int16_t>(a), y = lanes<int16_t>(b);
  const auto c = lanes<uint32_t>(sum);
  return make_lanes<__m512i, uint32_t>([&](int i) {
    const auto product = [&](int at) { return static_cast<uint32_t>(x.at[at] * y.at[at]); };
    return c.at[i] + product(2 * i) + product(2 * i + 1);
  });
}
// Each lane of `sum` gains the products of four neighbouring bytes, those of `a` unsigned; it
// wraps.
inline __m512i emulated_dpbusd_epi32(__m512i sum, __m512i a, __m512i b) {
  const auto x = lanes<uint8_t>(a);
  const auto y = lanes<int8_t>(b);
  const auto c = lanes<uint32_t>(sum);
  return make_lanes<__m512i, uint32_t>([&](int i) {
    uint32_t total = c.at[i];
    for (int at = 4 * i; at < 4 * i + 4; ++at) total += static_cast<uint32_t>(x.at[at] * y.at[at]);
    return total;
  });
}

// Conversions.
inline __m512 emulated_castsi512_ps(__m512i v) { return std::bit_cast<__m512>(v); }
inline __m512i emulated_castps_si512(__m512 v) { return std::bit_cast<__m512i>(v); }
inline __m256i emulated_castsi512_si256(__m512i v) { return load_unaligned<__m256i>(&v); }
inline __m256i emulated_extracti64x4_epi64(__m512i v, int half) {
  return load_unaligned<__m256i>(reinterpret_cast<const char*>(&v) + 32 * half);
}
inline __m512i emulated_castsi256_si512(__m256i v) {
  __m512i wide = emulated_setzero_si512();
  std::memcpy(&wide, &v, sizeof(v));
  return wide;
}
inline __m512i emulated_inserti64x4(__m512i v, __m256i part, int half) {
  std::memcpy(reinterpret_cast<char*>(&v) + 32 * half, &part, sizeof(part));
  return v;
}
inline __m512 emulated_cvtepi32_ps(__m512i a) {
  const auto x = lanes<int32_t>(a);
  return make_lanes<__m512, float>([&](int i) { return static_cast<float>(x.at[i]); });
}
inline __m512i emulated_cvtps_epi32(__m512 a) {
  const auto x = lanes<float>(a);
  return make_lanes<__m512i, int32_t>([&](int i) {
    const bool fits = x.at[i] >= -0x1p31F && x.at[i] < 0x1p31F;
    return fits ? static_cast<int32_t>(std::nearbyint(x.at[i])) : INT32_MIN;
  });
}
template <class From, class To, class Vector>
inline __m512i widen(Vector a) {
  const auto x = lanes<From>(a);
  return make_lanes<__m512i, To>([&](int i) { return To{x.at[i]}; });
}
inline __m512i emulated_cvtepu16_epi32(__m256i a) { return widen<uint16_t, int32_t>(a); }
inline __m512i emulated_cvtepi16_epi32(__m256i a) { return widen<int16_t, int32_t>(a); }
inline __m512i emulated_cvtepi8_epi32(__m128i a) { return widen<int8_t, int32_t>(a); }
inline __m256i emulated_cvtepi32_epi16(__m512i a) {
  const auto x = lanes<uint32_t>(a);
  return make_lanes<__m256i, uint16_t>([&](int i) { return static_cast<uint16_t>(x.at[i]); });
}
inline __m512 emulated_cvtph_ps(__m256i a) {
  const auto x = lanes<uint16_t>(a);
  return make_lanes<__m512, float>([&](int i) { return _cvtsh_ss(x.at[i]); });
}
inline __m256i emulated_cvtps_ph(__m512 a, int control) {
  if (control != _MM_FROUND_TO_NEAREST_INT) std::abort();
  const auto x = lanes<float>(a);
  return make_lanes<__m256i, uint16_t>(
      [&](int i) { return _cvtss_sh(x.at[i], _MM_FROUND_TO_NEAREST_INT); });
}

// bf16. Its instructions take subnormal numbers for zeros and never make any.
inline float flush_subnormal(float x) {
  return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x;
}
inline float float_from_bf16(uint16_t bits) {
  return flush_subnormal(std::bit_cast<float>(uint32_t{bits} << 16));
}
inline uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(flush_subnormal(value));
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float add_bf16_product(uint16_t a, uint16_t b, float sum) {
  return flush_subnormal(std::fma(float_from_bf16(a), float_from_bf16(b), flush_subnormal(sum)));
}
inline __m256bh emulated_cvtneps_pbh(__m512 a) {
  const auto x = lanes<float>(a);
  return make_lanes<__m256bh, uint16_t>([&](int i) { return bf16_from_float(x.at[i]); });
}
// The numbers of `low` first.
inline __m512bh emulated_cvtne2ps_pbh(__m512 high, __m512 low) {
  const auto x = lanes<float>(high), y = lanes<float>(low);
  return make_lanes<__m512bh, uint16_t>(
      [&](int i) { return bf16_from_float(i < 16 ? y.at[i] : x.at[i - 16]); });
}
inline __m512 emulated_dpbf16_ps(__m512 sum, __m512bh a, __m512bh b) {
  const auto x = lanes<uint16_t>(a), y = lanes<uint16_t>(b);
  const auto c = lanes<float>(sum);
  return make_lanes<__m512, float>([&](int i) {
    const int odd = 2 * i + 1, even = 2 * i;
    const float first = add_bf16_product(x.at[odd], y.at[odd], c.at[i]);
    return add_bf16_product(x.at[even], y.at[even], first);
  });
}

}  // namespace
}  // namespace winnow
