#include "cli/needle_file.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

Result<NeedlePrompt> read(const std::string& asked, const std::string& recalled) {
  return needle_prompt_from_json(R"({"ids": [5, 1, 2, 6, 7, 1, 2, 8], "asked_after": )" + asked +
                                     R"(, "recalled_inside": )" + recalled + "}",
                                 10, "file");
}

TEST(NeedleFile, NeedlesAreFoundByTheirDigits) {
  const auto prompt = read(R"([{"question_ids": [9], "answer_ids": [6, 7]}])",
                           R"([{"position": 5, "answer_ids": [1, 2]}])");
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  EXPECT_EQ(prompt->ids.size(), 8U);
  EXPECT_EQ(prompt->asked_after[0].needle, 3);
  EXPECT_EQ(prompt->asked_after[0].question, (std::vector<TokenId>{9}));
  EXPECT_EQ(prompt->recalled_inside[0].needle, 1);
  EXPECT_EQ(prompt->recalled_inside[0].position, 5);
}

TEST(NeedleFile, WhatCannotBeIsNamed) {
  const auto refused = [](const std::string& asked, const std::string& recalled,
                          const std::string& message) {
    const auto prompt = read(asked, recalled);
    ASSERT_FALSE(prompt.ok()) << message;
    EXPECT_EQ(prompt.error().code, ErrorCode::kInvalidArgument);
    EXPECT_NE(prompt.error().message.find(message), std::string::npos) << prompt.error().message;
  };
  refused("{}", "[]", "expected an array under \"asked_after\", found '{}'");
  refused("[3]", "[]", "asked_after[0]: expected an object, found '3'");
  refused(R"([{"question_ids": [1]}])", "[]", "under \"answer_ids\"");
  refused(R"([{"question_ids": [1], "answer_ids": []}])", "[]", "found none");
  refused(R"([{"question_ids": [1], "answer_ids": [99]}])", "[]", "token ids from 0 to 9");
  refused(R"([{"question_ids": [1], "answer_ids": [3]}])", "[]", "found it nowhere");
  refused("[]", R"([{"answer_ids": [1]}])", "under \"position\"");
  refused("[]", R"([{"position": 7, "answer_ids": [8, 1]}])", "under \"position\"");
  refused("[]", R"([{"position": -1, "answer_ids": [8]}])", "under \"position\"");
  refused("[]", R"([{"position": 1, "answer_ids": [1, 2]}])", "found it nowhere");
}

}  // namespace
}  // namespace winnow
