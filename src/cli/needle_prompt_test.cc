#include "cli/needle_prompt.h"

#include <gtest/gtest.h>

#include "cli/filler_text.h"
#include "support/tiny_tokenizer.h"

namespace winnow {
namespace {

using test::tiny_tokenizer;
using test::TinyTokenizer;

class NeedlePromptTest : public testing::TestWithParam<const char*> {
 protected:
  Result<NeedlePrompt> make(const NeedlePromptShape& shape) const {
    const auto frame = prompt_frame(tiny_.file->metadata(), *tiny_.tokenizer);
    EXPECT_TRUE(frame.ok()) << frame.error().message;
    return make_needle_prompt(*tiny_.tokenizer, *frame, builtin_prose(), shape);
  }
  std::string text(std::span<const TokenId> ids) const {
    return tiny_.tokenizer->decode(ids, false);
  }
  // The text before `position`, which must not be far from the prompt's beginning.
  std::string text_before(const NeedlePrompt& prompt, int64_t position) const {
    return text(std::span(prompt.ids).first(static_cast<size_t>(position)));
  }
  std::string text_at(const NeedlePrompt& prompt, int64_t position, size_t count) const {
    return text(std::span(prompt.ids).subspan(static_cast<size_t>(position), count));
  }

  TinyTokenizer tiny_ = tiny_tokenizer(GetParam());
};

constexpr NeedlePromptShape kPromptShape{.num_tokens = 20000, .num_needles = 10, .seed = 3};

TEST_P(NeedlePromptTest, HasExactlyTheLengthAskedFor) {
  for (const int64_t length : {6000, 20000}) {
    const auto prompt = make({length, 5, 0});
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(std::ssize(prompt->ids), length);
    EXPECT_EQ(prompt->asked_after.size(), 5U);
    EXPECT_EQ(prompt->recalled_inside.size(), 5U);
  }
}

TEST_P(NeedlePromptTest, NumbersStandWhereItSays) {
  const auto prompt = make(kPromptShape);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  for (const RecalledNeedle& needle : prompt->recalled_inside) {
    const std::string digits = text(needle.answer);
    EXPECT_EQ(digits.size(), 7U);
    EXPECT_EQ(digits.find_first_not_of("0123456789"), std::string::npos) << digits;
    for (const int64_t position : {needle.needle, needle.position}) {
      EXPECT_EQ(text_at(*prompt, position, needle.answer.size()), digits);
      EXPECT_TRUE(text_before(*prompt, position).ends_with(" is ")) << digits;
    }
  }
  for (const AskedNeedle& needle : prompt->asked_after) {
    EXPECT_EQ(text_at(*prompt, needle.needle, needle.answer.size()), text(needle.answer));
    const std::string question = text(needle.question);
    const size_t name_begin = question.find("number for ") + 11;
    const std::string name = question.substr(name_begin, question.find(" mentioned") - name_begin);
    EXPECT_TRUE(question.ends_with("The special magic number for " + name + " is "));
    EXPECT_TRUE(text_before(*prompt, needle.needle).ends_with(name + " is ")) << name;
  }
}

TEST_P(NeedlePromptTest, DepthsAreSpreadAndRecallsAreFarFromTheirNeedles) {
  const auto prompt = make(kPromptShape);
  ASSERT_TRUE(prompt.ok()) << prompt.error().message;
  const auto depth = [&](int64_t position) {
    return static_cast<double>(position) / static_cast<double>(kPromptShape.num_tokens);
  };
  for (size_t i = 0; i < 10; ++i) {
    const double part = (static_cast<double>(i) + 0.5) / 10;
    EXPECT_NEAR(depth(prompt->asked_after[i].needle), part, 0.03);
    const RecalledNeedle& recalled = prompt->recalled_inside[i];
    EXPECT_NEAR(depth(recalled.needle), part / 2, 0.03);
    EXPECT_GT(depth(recalled.position), 0.54);
    EXPECT_LT(depth(recalled.position), 0.92);
  }
}

TEST_P(NeedlePromptTest, TheSeedAloneChooses) {
  const auto first = make(kPromptShape);
  const auto again = make(kPromptShape);
  const auto other =
      make({kPromptShape.num_tokens, kPromptShape.num_needles, kPromptShape.seed + 1});
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(first->ids, again->ids);
  EXPECT_NE(first->ids, other->ids);
}

TEST_P(NeedlePromptTest, TooManyNeedlesAreRefused) {
  const auto prompt = make({.num_tokens = 300, .num_needles = 20, .seed = 0});
  ASSERT_FALSE(prompt.ok());
  EXPECT_EQ(prompt.error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, NeedlePromptTest,
                         testing::Values("llama-untied", "llama-group3", "gemma3-default"));

TEST(NeedleRecall, OnlyDigitsAtTheirPlacesAreRight) {
  EXPECT_EQ(num_right(std::vector<TokenId>{1, 2, 3}, std::vector<TokenId>{1, 3, 3}), 2);
  EXPECT_EQ(num_right(std::vector<TokenId>{1, 2, 3}, std::vector<TokenId>{1}), 1);
  EXPECT_EQ(num_right(std::vector<TokenId>{1, 2}, std::vector<TokenId>{2, 1, 2}), 0);
}

}  // namespace
}  // namespace winnow
