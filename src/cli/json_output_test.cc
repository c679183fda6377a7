#include "cli/json_output.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

TEST(JsonOutput, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(json_line(json_text("a\xFF\"\n")), "\"a\xEF\xBF\xBD\\\"\\n\"\n");
}

TEST(JsonOutput, IdsAreReadFromTheNamedArray) {
  const auto ids = ids_from_json(R"({"x": 1, "tokens": [0, 5, 9]})", "tokens", 10, "stdin");
  ASSERT_TRUE(ids.ok()) << ids.error().message;
  EXPECT_EQ(*ids, (std::vector<TokenId>{0, 5, 9}));
  EXPECT_TRUE(ids_from_json(R"({"tokens": []})", "tokens", 10, "stdin").value().empty());
}

TEST(JsonOutput, WhatIsNotAnArrayOfIdsIsRefusedWithItsPlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected JSON"},
      {"{", "expected JSON"},
      {std::string(100, '['), "expected JSON"},
      {"[1]", "expected an object with an array of token ids under \"tokens\", found '[1]'"},
      {"{\"ids\": [1]}", "under \"tokens\""},
      {"{\"tokens\": 1}", "under \"tokens\""},
      {"{\"tokens\": [1, 10]}",
       "expected token ids from 0 to 9 under \"tokens\", found 10 at index 1"},
      {"{\"tokens\": [-1]}", "found -1 at index 0"},
      {"{\"tokens\": [1.5]}", "at index 0"},
      {"{\"tokens\": [9223372036854775808]}", "at index 0"},
      {"{\"tokens\": [true]}", "found true"},
      {"{\"tokens\": [\"1\"]}", "at index 0"},
      {"{\"tokens\": [[1]]}", "found [1]"},
      {"{\"tokens\": [1]} x", "expected JSON"},
  };
  for (const auto& [text, message] : cases) {
    const auto ids = ids_from_json(text, "tokens", 10, "stdin");
    ASSERT_FALSE(ids.ok()) << text;
    EXPECT_EQ(ids.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(ids.error().message.find(message), std::string::npos) << ids.error().message;
  }
}

}  // namespace
}  // namespace winnow
