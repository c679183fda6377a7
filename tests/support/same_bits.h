// For tests: floats that must be the same, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <span>

namespace winnow::test {

inline void expect_same_bits(std::span<const float> got, std::span<const float> want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "float " << i << ": " << got[i] << " and " << want[i];
  }
}

inline void expect_same_bits(float got, float want) { expect_same_bits({&got, 1}, {&want, 1}); }

}  // namespace winnow::test
