#include "weights/metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace winnow {
namespace {

Metadata sample() {
  Metadata metadata;
  metadata.set("bool", true);
  metadata.set("int", int64_t{30});
  metadata.set("negative", int64_t{-30});
  metadata.set("large", uint64_t{UINT64_MAX});
  metadata.set("whole", 30.0);
  metadata.set("half", 0.5);
  metadata.set("text", std::string("llama"));
  metadata.set("ints", std::vector<int64_t>{3, 4, 5});
  metadata.set("numbers", std::vector<double>{0.5});
  metadata.set("texts", std::vector<std::string>{"a"});
  metadata.set("bools", std::vector<bool>{true});
  return metadata;
}

template <class T>
void expect_error(const Result<T>& result, const std::vector<std::string>& words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kCorruptFile);
  for (const std::string& word : words) {
    EXPECT_NE(result.error().message.find(word), std::string::npos) << result.error().message;
  }
}

TEST(Metadata, AnIntegerIsTakenFromAnyKindOfNumberThatHoldsOne) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.integer("int", 1, 100).value(), 30);
  EXPECT_EQ(metadata.integer("whole", 1, 100).value(), 30);
  expect_error(metadata.integer("half", 0, 100),
               {"'half'", "expected an integer", "found a number"});
  expect_error(metadata.integer("text", 0, 100),
               {"'text'", "expected an integer", "found a string"});
  expect_error(metadata.integer("bool", 0, 100), {"'bool'", "found a bool"});
  expect_error(metadata.integer("ints", 0, 100), {"'ints'", "found an array of integers"});
}

TEST(Metadata, AnIntegerOutOfRangeIsAnErrorThatNamesTheRange) {
  const Metadata metadata = sample();
  expect_error(metadata.integer("negative", 1, 1000), {"'negative'", "1 to 1000", "found -30"});
  expect_error(metadata.integer("int", 1, 29), {"1 to 29", "found 30"});
  EXPECT_TRUE(metadata.integer("int", 30, 30).ok());
  expect_error(metadata.integer("large", 0, INT64_MAX), {"found 18446744073709551615"});
}

TEST(Metadata, NumbersBeyondTheRangeOfIntegersAreNoIntegers) {
  Metadata metadata;
  metadata.set("inf", HUGE_VAL);
  metadata.set("nan", std::nan(""));
  metadata.set("big", 1e300);
  for (const char* key : {"inf", "nan", "big"})
    expect_error(metadata.integer(key, INT64_MIN, INT64_MAX), {key});
}

TEST(Metadata, AMissingKeyIsAnErrorAndAFallbackWhereThereIsOne) {
  const Metadata metadata = sample();
  expect_error(metadata.integer("absent", 0, 1), {"'absent'", "found nothing"});
  expect_error(metadata.number("absent", 0, 1), {"'absent'"});
  expect_error(metadata.string("absent"), {"'absent'"});
  expect_error(metadata.integers("absent", 2, 0, 1), {"'absent'"});
  EXPECT_EQ(metadata.integer_or("absent", -7, 0, 1).value(), -7);
  EXPECT_EQ(metadata.number_or("absent", 1.5, 2, 3).value(), 1.5);
  EXPECT_TRUE(metadata.boolean_or("absent", true).value());
  EXPECT_EQ(metadata.string_or("absent", "x").value(), "x");
  EXPECT_EQ(metadata.strings("absent").value(), nullptr);
  EXPECT_EQ(metadata.integer_array("absent").value(), nullptr);
  EXPECT_EQ(metadata.number_array("absent").value(), nullptr);
}

TEST(Metadata, AValueOfTheWrongKindIsAnErrorEvenWithAFallback) {
  const Metadata metadata = sample();
  expect_error(metadata.integer_or("text", 1, 0, 9), {"'text'"});
  expect_error(metadata.number_or("text", 1, 0, 9), {"expected a number", "found a string"});
  expect_error(metadata.boolean_or("int", true), {"expected a bool"});
  expect_error(metadata.string_or("int", ""), {"expected a string", "found an integer"});
  expect_error(metadata.strings("ints"), {"expected an array of strings"});
  expect_error(metadata.integer_array("int"),
               {"expected an array of integers", "found an integer"});
  expect_error(metadata.number_array("bools"),
               {"expected an array of numbers", "found an array of bools"});
}

TEST(Metadata, AScalarStandsForEveryElementOfAnArray) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.integers("int", 3, 0, 100).value(), (std::vector<int64_t>{30, 30, 30}));
  EXPECT_EQ(metadata.integers("ints", 3, 0, 100).value(), (std::vector<int64_t>{3, 4, 5}));
  expect_error(metadata.integers("ints", 4, 0, 100), {"'ints'", "expected 4 elements", "found 3"});
  expect_error(metadata.integers("ints", 3, 0, 4), {"found 5"});
}

TEST(Metadata, NumbersComeFromIntegersToo) {
  const Metadata metadata = sample();
  EXPECT_EQ(metadata.number("int", 30, 30).value(), 30.0);
  EXPECT_EQ(metadata.number("half", 0, 1).value(), 0.5);
  EXPECT_EQ(metadata.number("large", 0, 1e20).value(), 18446744073709551616.0);
}

TEST(Metadata, ANumberOutOfItsRangeIsAnErrorWithTheRange) {
  Metadata metadata = sample();
  expect_error(metadata.number("int", 0, 29.5),
               {"'int'", "expected a number from 0 to 29.5", "found 30"});
  expect_error(metadata.number_or("half", 1, 1, 2), {"'half'", "from 1 to 2", "found 0.5"});
  metadata.set("nan", std::nan(""));
  metadata.set("inf", std::numeric_limits<double>::infinity());
  expect_error(metadata.number("nan", -1e300, 1e300), {"'nan'", "found nan"});
  expect_error(metadata.number("inf", -1e300, 1e300), {"'inf'", "found inf"});
}

TEST(Metadata, HostileKeysArePrintedSafely) {
  expect_error(Metadata().string("\x1B[2J"), {"'\\x1B[2J'"});
}

}  // namespace
}  // namespace winnow
