#include "tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace winnow {
namespace {

// The 16-bit number nearest to `value`, ties to even, by search over all finite ones of its sign.
uint16_t nearest(KvDType dtype, float value, uint16_t largest) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(double{value});
  uint16_t low = 0;
  uint16_t high = largest;
  while (low < high) {  // the last one that is not above
    const auto middle = static_cast<uint16_t>((low + high + 1) / 2);
    if (half_to_float(dtype, middle) <= magnitude) {
      low = middle;
    } else {
      high = static_cast<uint16_t>(middle - 1);
    }
  }
  if (low == largest) return sign | low;
  const auto above = static_cast<uint16_t>(low + 1);
  const double below_by = magnitude - half_to_float(dtype, low);
  const double above_by = half_to_float(dtype, above) - magnitude;
  const bool up = above_by < below_by || (above_by == below_by && above % 2 == 0);
  return static_cast<uint16_t>(sign | (up ? above : low));
}

TEST(Half, EveryF16NumberIsWhatItsFieldsSay) {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const uint32_t exponent = bits >> 10;
    const double mantissa = bits & 0x3ff;
    const double want = exponent == 0
                            ? std::ldexp(mantissa, -24)
                            : std::ldexp(1024 + mantissa, static_cast<int>(exponent) - 25);
    ASSERT_EQ(f16_to_float(static_cast<uint16_t>(bits)), want) << bits;
    ASSERT_EQ(f16_to_float(static_cast<uint16_t>(bits | 0x8000)), -want) << bits;
  }
  EXPECT_EQ(f16_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f16_to_float(0x7c01)));
}

TEST(Half, RoundsToTheNearestNumberAndTiesToEven) {
  uint32_t state = 1;
  for (int i = 0; i < 200000; ++i) {
    state = state * 1664525 + 1013904223;
    // Half of the patterns lie at or beside a tie.
    const uint32_t bits = i % 2 == 0 ? state : (state & 0xfffff000U) + (state >> 3 & 1);
    const auto value = std::bit_cast<float>(bits);
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(f16_from_float(value), nearest(KvDType::kF16, value, 0x7bff)) << value;
    if (std::abs(value) < 3.38e38F) {
      ASSERT_EQ(bf16_from_float(value), nearest(KvDType::kBf16, value, 0x7f7f)) << value;
    }
  }
}

TEST(Half, F16SaturatesAndNaNStaysNaN) {
  EXPECT_EQ(f16_to_float(f16_from_float(1e30F)), 65504.0F);
  EXPECT_EQ(f16_to_float(f16_from_float(-std::numeric_limits<float>::infinity())), -65504.0F);
  for (const uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xffffffffU, 0x7f801000U}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(f16_to_float(f16_from_float(nan))));
    EXPECT_TRUE(std::isnan(bf16_to_float(bf16_from_float(nan))));
  }
}

}  // namespace
}  // namespace winnow
