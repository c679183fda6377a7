#include "cli/length_mix.h"

#include <gtest/gtest.h>

#include <map>

namespace winnow {
namespace {

constexpr int64_t kMaxLength = 100000;

Result<LengthMix> parsed(std::string_view text) {
  return LengthMix::parse(text, kMaxLength, "--prompt-tokens");
}

TEST(LengthMix, LengthsComeAsOftenAsTheirWeightsSay) {
  const auto mix = parsed("128:6,2048:3,4096");
  ASSERT_TRUE(mix.ok()) << mix.error().message;
  RandomStream random(7);
  std::map<int64_t, int> seen;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) ++seen[mix->draw(random)];
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_NEAR(seen[128], kDraws * 0.6, 300);
  EXPECT_NEAR(seen[2048], kDraws * 0.3, 300);
  EXPECT_NEAR(seen[4096], kDraws * 0.1, 300);
  EXPECT_EQ(mix->longest(), 4096);
}

TEST(LengthMix, OneLengthIsAlwaysDrawn) {
  const auto mix = parsed("77");
  ASSERT_TRUE(mix.ok());
  RandomStream random(1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(mix->draw(random), 77);
}

TEST(LengthMix, WrongPartsAreRefusedByName) {
  for (const char* text : {"", ",", "128,", "0", "-1", "x", "128:0", "128:-1", "128:", "128:x",
                           "128:nan", "128:inf", "100001", "1:2:3", "1 2"}) {
    const auto mix = parsed(text);
    ASSERT_FALSE(mix.ok()) << text;
    EXPECT_EQ(mix.error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(mix.error().message.find("--prompt-tokens: expected LENGTH"), 0U);
  }
}

}  // namespace
}  // namespace winnow
