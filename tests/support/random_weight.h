// Weights of every type with random codes and sane scales.
#pragma once

#include <array>
#include <cstring>
#include <random>
#include <span>

#include "tensor/dtype.h"
#include "tensor/half.h"

namespace winnow {

inline constexpr std::array kAllDTypes = {
    DType::kF32,  DType::kF16,    DType::kBF16,   DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
    DType::kQ5_1, DType::kQ8_0,   DType::kQ2_K,   DType::kQ3_K, DType::kQ4_K, DType::kQ5_K,
    DType::kQ6_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

// Offsets of the half floats in a group.
inline std::span<const int> half_offsets(DType dtype) {
  static constexpr int kFirst[] = {0}, kFirstTwo[] = {0, 2}, kQ2[] = {80, 82}, kQ3[] = {108},
                       kQ6[] = {208};
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return kFirstTwo;
    case DType::kQ2_K:
      return kQ2;
    case DType::kQ3_K:
      return kQ3;
    case DType::kQ6_K:
      return kQ6;
    case DType::kMXFP4:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      return {};
    default:
      return kFirst;
  }
}

template <class Rng>
void fill_random_group(DType dtype, std::byte* group, Rng& rng) {
  const DTypeInfo& info = dtype_info(dtype);
  std::uniform_int_distribution<int> any_byte(0, 255);
  std::uniform_real_distribution<float> scale(-0.02F, 0.02F);
  for (int i = 0; i < info.group_bytes; ++i) group[i] = static_cast<std::byte>(any_byte(rng));
  for (const int offset : half_offsets(dtype)) {
    const uint16_t bits = f16_from_float(scale(rng));
    std::memcpy(group + offset, &bits, sizeof(bits));
  }
  if (dtype == DType::kMXFP4) group[0] = static_cast<std::byte>(118 + any_byte(rng) % 8);
  const float plain = std::normal_distribution<float>(0, 0.3F)(rng);
  const uint16_t half = dtype == DType::kBF16 ? bf16_from_float(plain) : f16_from_float(plain);
  if (dtype == DType::kF32) std::memcpy(group, &plain, sizeof(plain));
  if (info.group_bytes == 2) std::memcpy(group, &half, sizeof(half));
}

// Fills `bytes` of whole groups.
template <class Rng>
void fill_random_weight(DType dtype, std::span<std::byte> bytes, Rng& rng) {
  const auto group_bytes = static_cast<size_t>(dtype_info(dtype).group_bytes);
  for (size_t at = 0; at < bytes.size(); at += group_bytes)
    fill_random_group(dtype, bytes.data() + at, rng);
}

}  // namespace winnow
