// Every quantised type as 8-bit codes and float scales, a span of 8 groups (256 columns) at a time.
//
// For each type:
//   kBits      codes lie in [0, 1 << kBits); with 8 bits they are signed, in [-128, 127]
//   kHalves    the scale changes every 16 columns, not every 32
//   kMinimums  w = d * code + m with an m of its own per group; otherwise w = d * (code - kZero)
//   kPartSpans rows may end within a span
//   codes<g>   the 32 codes of group g of a span
//   scales     d (and m) of the first n groups of a span, zeros for the others; with kHalves those
//              of all groups' first halves, then those of their second halves
// Needs the codes_* and float8_* vocabulary of isa/codes_*.h.
#pragma once

#include "kernels/isa/load_bytes.h"

namespace winnow {
namespace {

constexpr int kSpanGroups = 8;
constexpr int kMaxScales = 2 * kSpanGroups;

alignas(16) constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};
// Twice the fp4 (e2m1) values plus 12.
alignas(16) constexpr int8_t kFp4Values[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                               12, 11, 10, 9,  8,  6,  4,  0};

inline uint64_t join_u32(uint32_t low, uint32_t high) {
  return low | static_cast<uint64_t>(high) << 32;
}

constexpr uint64_t kEachByte = 0x0101010101010101ULL;

// Types of one group of 32 with half-float d, and m after it where they have one.
template <int kBytes, bool kWithMinimum>
struct SmallGroupScales {
  static constexpr int kSpanBytes = kSpanGroups * kBytes;
  static constexpr bool kPartSpans = true;
  static constexpr bool kHalves = false;
  static constexpr bool kMinimums = kWithMinimum;
  [[gnu::always_inline]] static void scales(const uint8_t* span, int n, float* d, float* m) {
    float8_store(d, float8_gather_halves(span, kBytes, n));
    if constexpr (kWithMinimum) float8_store(m, float8_gather_halves(span + 2, kBytes, n));
  }
};

struct TypeQ4_0 : SmallGroupScales<18, false> {
  static constexpr int kBits = 4, kZero = 8;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_nibbles(span + g * 18 + 2);
  }
};

struct TypeQ4_1 : SmallGroupScales<20, true> {
  static constexpr int kBits = 4, kZero = 0;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_nibbles(span + g * 20 + 4);
  }
};

struct TypeQ5_0 : SmallGroupScales<22, false> {
  static constexpr int kBits = 5, kZero = 16;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_or(codes_nibbles(span + g * 22 + 6), codes_bits(span + g * 22 + 2, 16));
  }
};

struct TypeQ5_1 : SmallGroupScales<24, true> {
  static constexpr int kBits = 5, kZero = 0;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_or(codes_nibbles(span + g * 24 + 8), codes_bits(span + g * 24 + 4, 16));
  }
};

struct TypeQ8_0 : SmallGroupScales<34, false> {
  static constexpr int kBits = 8, kZero = 0;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_load(span + g * 34 + 2);
  }
};

struct TypeIQ4_NL : SmallGroupScales<18, false> {
  static constexpr int kBits = 8, kZero = 0;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_lookup(codes_nibbles(span + g * 18 + 2), kIq4Values);
  }
};

struct TypeMXFP4 {
  static constexpr int kSpanBytes = kSpanGroups * 17;
  static constexpr bool kPartSpans = true;
  static constexpr int kBits = 5, kZero = 12;
  static constexpr bool kHalves = false, kMinimums = false;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_lookup(codes_nibbles(span + g * 17 + 1), kFp4Values);
  }
  // d = 2^(e - 128): codes count in halves. The two smallest exponents are denormal.
  [[gnu::always_inline]] static void scales(const uint8_t* span, int n, float* d, float* /*m*/) {
    for (int g = 0; g < kSpanGroups; ++g) {
      uint32_t bits = 0;
      if (g < n) {
        const uint32_t exponent = span[g * 17];
        bits = exponent >= 2 ? (exponent - 1) << 23 : 0x00200000U << exponent;
      }
      std::memcpy(d + g, &bits, sizeof(bits));
    }
  }
};

// Q4_K and Q5_K: 8 scales and 8 minimums of 6 bits in 12 bytes, after half floats d and dmin.
struct SixBitScales {
  static constexpr bool kPartSpans = false;
  static constexpr int kZero = 0;
  static constexpr bool kHalves = false, kMinimums = true;
  [[gnu::always_inline]] static void scales(const uint8_t* span, int /*n*/, float* d, float* m) {
    const uint32_t a = load_u32(span + 4), b = load_u32(span + 8), c = load_u32(span + 12);
    constexpr uint32_t kLow6 = 0x3f3f3f3fU, kLow4 = 0x0f0f0f0fU, kLow2 = 0x03030303U;
    const uint64_t scale = join_u32(a & kLow6, (c & kLow4) | (a >> 6 & kLow2) << 4);
    const uint64_t minimum = join_u32(b & kLow6, (c >> 4 & kLow4) | (b >> 6 & kLow2) << 4);
    float8_store(d,
                 float8_mul(float8_set(float_from_half(span)), float8_from_unsigned_bytes(scale)));
    float8_store(
        m, float8_mul(float8_set(-float_from_half(span + 2)), float8_from_unsigned_bytes(minimum)));
  }
};

struct TypeQ4_K : SixBitScales {
  static constexpr int kSpanBytes = 144, kBits = 4;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_field<g % 2 * 4>(codes_load(span + 16 + g / 2 * 32), 15);
  }
};

struct TypeQ5_K : SixBitScales {
  static constexpr int kSpanBytes = 176, kBits = 5;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    const Codes32 low = codes_field<g % 2 * 4>(codes_load(span + 48 + g / 2 * 32), 15);
    return codes_or(low, codes_field_at<g, 4>(codes_load(span + 16), 1));
  }
};

struct TypeQ6_K {
  static constexpr bool kPartSpans = false;
  static constexpr int kSpanBytes = 210, kBits = 6, kZero = 32;
  static constexpr bool kHalves = true, kMinimums = false;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    constexpr int kHalf = g / 4, kPart = g % 4;
    const Codes32 low =
        codes_field<kPart / 2 * 4>(codes_load(span + kHalf * 64 + kPart % 2 * 32), 15);
    return codes_or(low, codes_field_at<kPart * 2, 4>(codes_load(span + 128 + kHalf * 32), 3));
  }
  [[gnu::always_inline]] static void scales(const uint8_t* span, int /*n*/, float* d,
                                            float* /*m*/) {
    const Float8 unit = float8_set(float_from_half(span + 208));
    const SplitBytes scale = split_bytes(load_u64(span + 192), load_u64(span + 200));
    float8_store(d, float8_mul(unit, float8_from_signed_bytes(scale.even)));
    float8_store(d + 8, float8_mul(unit, float8_from_signed_bytes(scale.odd)));
  }
};

struct TypeQ2_K {
  static constexpr bool kPartSpans = false;
  static constexpr int kSpanBytes = 84, kBits = 2, kZero = 0;
  static constexpr bool kHalves = true, kMinimums = true;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_field<g % 4 * 2>(codes_load(span + 16 + g / 4 * 32), 3);
  }
  [[gnu::always_inline]] static void scales(const uint8_t* span, int /*n*/, float* d, float* m) {
    const Float8 unit = float8_set(float_from_half(span + 80));
    const Float8 minimum_unit = float8_set(-float_from_half(span + 82));
    const SplitBytes packed = split_bytes(load_u64(span), load_u64(span + 8));
    for (int h = 0; h < 2; ++h) {
      const uint64_t bytes = h == 0 ? packed.even : packed.odd;
      float8_store(d + 8 * h, float8_mul(unit, float8_from_unsigned_bytes(bytes & kEachByte * 15)));
      float8_store(m + 8 * h, float8_mul(minimum_unit,
                                         float8_from_unsigned_bytes(bytes >> 4 & kEachByte * 15)));
    }
  }
};

struct TypeQ3_K {
  static constexpr bool kPartSpans = false;
  static constexpr int kSpanBytes = 110, kBits = 3, kZero = 4;
  static constexpr bool kHalves = true, kMinimums = false;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    const Codes32 low = codes_field<g % 4 * 2>(codes_load(span + 32 + g / 4 * 32), 3);
    return codes_or(low, high_bit<g>(codes_load(span)));
  }
  template <int g>
  [[gnu::always_inline]] static Codes32 high_bit(Codes32 bytes) {
    return codes_field_at<g, 2>(bytes, 1);
  }
  // 16 scales of 6 bits: nibbles in 8 bytes, then pairs of high bits in 4.
  [[gnu::always_inline]] static void scales(const uint8_t* span, int /*n*/, float* d,
                                            float* /*m*/) {
    const uint64_t nibbles = load_u64(span + 96);
    const uint32_t high = load_u32(span + 104);
    constexpr uint32_t kLow2 = 0x03030303U;
    const uint64_t first = (nibbles & kEachByte * 15) | join_u32(high & kLow2, high >> 2 & kLow2)
                                                            << 4;
    const uint64_t second =
        (nibbles >> 4 & kEachByte * 15) | join_u32(high >> 4 & kLow2, high >> 6 & kLow2) << 4;
    const Float8 unit = float8_set(float_from_half(span + 108));
    const Float8 offset = float8_set(-32.0f);
    const SplitBytes scale = split_bytes(first, second);
    float8_store(d, float8_mul(unit, float8_add(float8_from_unsigned_bytes(scale.even), offset)));
    float8_store(d + 8,
                 float8_mul(unit, float8_add(float8_from_unsigned_bytes(scale.odd), offset)));
  }
};

struct TypeIQ4_XS {
  static constexpr bool kPartSpans = false;
  static constexpr int kSpanBytes = 136, kBits = 8, kZero = 0;
  static constexpr bool kHalves = false, kMinimums = false;
  template <int g>
  [[gnu::always_inline]] static Codes32 codes(const uint8_t* span) {
    return codes_lookup(codes_nibbles(span + 8 + g * 16), kIq4Values);
  }
  [[gnu::always_inline]] static void scales(const uint8_t* span, int /*n*/, float* d,
                                            float* /*m*/) {
    const uint32_t low = load_u32(span + 4);
    const uint32_t high = load_u16(span + 2);
    uint64_t scale = 0;
    for (int g = 0; g < kSpanGroups; ++g) {
      const uint32_t value = (low >> (4 * g) & 15) | (high >> (2 * g) & 3) << 4;
      scale |= static_cast<uint64_t>(value) << (8 * g);
    }
    const Float8 offset = float8_set(-32.0f);
    float8_store(d, float8_mul(float8_set(float_from_half(span)),
                               float8_add(float8_from_unsigned_bytes(scale), offset)));
  }
};

// Calls op.template run<Type>() with the description of a quantised type.
template <class Op>
inline void with_type(DType dtype, const Op& op) {
  switch (dtype) {
    case DType::kQ4_0:
      return op.template run<TypeQ4_0>();
    case DType::kQ4_1:
      return op.template run<TypeQ4_1>();
    case DType::kQ5_0:
      return op.template run<TypeQ5_0>();
    case DType::kQ5_1:
      return op.template run<TypeQ5_1>();
    case DType::kQ8_0:
      return op.template run<TypeQ8_0>();
    case DType::kQ2_K:
      return op.template run<TypeQ2_K>();
    case DType::kQ3_K:
      return op.template run<TypeQ3_K>();
    case DType::kQ4_K:
      return op.template run<TypeQ4_K>();
    case DType::kQ5_K:
      return op.template run<TypeQ5_K>();
    case DType::kQ6_K:
      return op.template run<TypeQ6_K>();
    case DType::kIQ4_NL:
      return op.template run<TypeIQ4_NL>();
    case DType::kIQ4_XS:
      return op.template run<TypeIQ4_XS>();
    case DType::kMXFP4:
      return op.template run<TypeMXFP4>();
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return;
  }
}

}  // namespace
}  // namespace winnow
