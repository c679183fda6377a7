#include "tensor/qformats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/same_bits.h"

namespace winnow {
namespace {

using test::expect_same_bits;

struct GoldenCase {
  std::string name;
  int64_t elements = 0;
  std::vector<std::byte> stored;
  std::vector<float> floats;
};

std::vector<std::byte> bytes_from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t idx = 0; idx + 1 < hex.size(); idx += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(idx, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<GoldenCase> golden_cases() {
  std::ifstream file(WINNOW_SOURCE_DIR "/tests/golden/qformats.txt");
  std::vector<GoldenCase> cases;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream fields(line);
    GoldenCase golden;
    std::string stored;
    std::string floats;
    fields >> golden.name >> golden.elements >> stored >> floats;
    golden.stored = bytes_from_hex(stored);
    const std::vector<std::byte> float_bytes = bytes_from_hex(floats);
    golden.floats.resize(float_bytes.size() / sizeof(float));
    std::memcpy(golden.floats.data(), float_bytes.data(), float_bytes.size());
    cases.push_back(std::move(golden));
  }
  return cases;
}

std::optional<DType> dtype_named(const std::string& name) {
  for (uint32_t number = 0; number < 64; ++number) {
    const std::optional<DType> dtype = dtype_from_gguf(number);
    if (dtype && dtype_info(*dtype).name == name) return dtype;
  }
  return std::nullopt;
}

TEST(Qformats, EveryTypeEqualsTheGgufPackageBitForBit) {
  const std::vector<GoldenCase> cases = golden_cases();
  ASSERT_EQ(cases.size(), 16u);
  for (const GoldenCase& golden : cases) {
    SCOPED_TRACE(golden.name);
    const std::optional<DType> dtype = dtype_named(golden.name);
    ASSERT_TRUE(dtype.has_value());
    ASSERT_EQ(dtype_bytes(*dtype, golden.elements), static_cast<int64_t>(golden.stored.size()));
    std::vector<float> got(golden.floats.size());
    dequantize(*dtype, golden.stored.data(), golden.elements, got.data());
    expect_same_bits(got, golden.floats);
  }
}

TEST(Qformats, DataNeedsNoAlignment) {
  for (const GoldenCase& golden : golden_cases()) {
    SCOPED_TRACE(golden.name);
    std::vector<std::byte> shifted(golden.stored.size() + 1);
    std::memcpy(shifted.data() + 1, golden.stored.data(), golden.stored.size());
    std::vector<float> got(golden.floats.size());
    dequantize(*dtype_named(golden.name), shifted.data() + 1, golden.elements, got.data());
    expect_same_bits(got, golden.floats);
  }
}

TEST(Qformats, NothingIsWrittenBeyondTheElementsAskedFor) {
  for (const GoldenCase& golden : golden_cases()) {
    SCOPED_TRACE(golden.name);
    const DType dtype = *dtype_named(golden.name);
    const int64_t group_size = dtype_info(dtype).group_size;
    std::vector<float> got(static_cast<size_t>(group_size) + 1, 12345.0F);
    dequantize(dtype, golden.stored.data(), 0, got.data());
    EXPECT_EQ(got[0], 12345.0F);
    dequantize(dtype, golden.stored.data(), group_size, got.data());
    EXPECT_EQ(got.back(), 12345.0F);
  }
}

TEST(Qformats, InfinityAndNanOfHalvesStayWhatTheyAre) {
  const uint16_t halves[] = {0x7C00, 0xFC00, 0x7E00};
  float got[3] = {};
  dequantize(DType::kF16, reinterpret_cast<const std::byte*>(halves), 3, got);
  EXPECT_EQ(got[0], HUGE_VALF);
  EXPECT_EQ(got[1], -HUGE_VALF);
  EXPECT_TRUE(std::isnan(got[2]));
}

}  // namespace
}  // namespace winnow
