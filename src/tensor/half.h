// Conversions between f32 and the 16-bit types of the KV cache, one number at a time: the rule that
// vector code must equal bit for bit.
#pragma once

#include <bit>
#include <cstdint>

#include "tensor/kv_dtype.h"

namespace winnow {

inline float bf16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// Rounds to nearest even; NaN becomes a quiet NaN.
inline uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float f16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000U} << 16;
  const uint32_t magnitude = bits & 0x7fffU;
  // An exponent of all ones stays all ones; a NaN becomes quiet, as the hardware makes it.
  if (magnitude > 0x7c00) return std::bit_cast<float>(sign | 0x7fc00000U | magnitude << 13);
  if (magnitude == 0x7c00) return std::bit_cast<float>(sign | 0x7f800000U);
  // Moving the exponent by a product gets subnormal numbers right too.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

// Rounds to nearest even; beyond the largest finite number (65504) it saturates. NaN becomes a
// quiet NaN.
inline uint16_t f16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return static_cast<uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  }
  if (magnitude >= 0x477fe000U) return static_cast<uint16_t>(sign | 0x7bff);
  if (magnitude < 0x38800000U) {
    // Below the smallest normal number: the addition rounds at 2^-24, the subnormal step.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000U));
  }
  const uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000U) >> 13);
}

inline float half_to_float(KvDType dtype, uint16_t bits) {
  return dtype == KvDType::kBf16 ? bf16_to_float(bits) : f16_to_float(bits);
}

inline uint16_t half_from_float(KvDType dtype, float value) {
  return dtype == KvDType::kBf16 ? bf16_from_float(value) : f16_from_float(value);
}

}  // namespace winnow
