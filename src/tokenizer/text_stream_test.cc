// TextStream: half characters, broken bytes and stop strings across tokens.
#include "tokenizer/text_stream.h"

#include <gtest/gtest.h>

#include <random>

#include "base/utf8.h"
#include "support/test_vocabulary.h"

namespace winnow {
namespace {

class TextStreamOfBytes : public testing::Test {
 protected:
  TokenId byte(int value) const { return 3 + value; }
  TextStream stream(std::vector<std::string> stops = {}) const {
    return TextStream(*tokenizer_, std::make_shared<const MarkSet>(std::move(stops)));
  }
  // What each byte of `text`, pushed alone, sets free.
  std::vector<std::string> deltas(TextStream& to, std::string_view text) const {
    std::vector<std::string> all;
    for (const char c : text) all.push_back(to.push(byte(static_cast<uint8_t>(c))));
    return all;
  }
  std::string whole(std::string_view text, std::vector<std::string> stops = {}) const {
    TextStream to = stream(std::move(stops));
    std::string joined;
    for (const std::string& delta : deltas(to, text)) {
      EXPECT_EQ(valid_utf8_prefix(delta), delta.size());
      joined += delta;
    }
    return joined + to.finish();
  }

  std::unique_ptr<Tokenizer> tokenizer_ =
      Tokenizer::create(test::sentence_piece_vocabulary()).value();
};

using Deltas = std::vector<std::string>;

TEST_F(TextStreamOfBytes, ACharacterComesWithTheByteThatCompletesIt) {
  TextStream to = stream();
  EXPECT_EQ(deltas(to, "a\U0001F999b"), (Deltas{"a", "", "", "", "\U0001F999", "b"}));
  EXPECT_EQ(to.finish(), "");
}

TEST_F(TextStreamOfBytes, BrokenBytesBecomeReplacementCharactersAtOnce) {
  TextStream to = stream();
  EXPECT_EQ(deltas(to, "\xFF\xF0\x9Fx"), (Deltas{"\uFFFD", "", "", "\uFFFDx"}));
}

TEST_F(TextStreamOfBytes, AnUnfinishedCharacterIsFlushedAtTheEnd) {
  EXPECT_EQ(whole("a\xF0\x9F"), "a\uFFFD");
}

TEST_F(TextStreamOfBytes, ARealReplacementCharacterIsOrdinaryText) {
  TextStream to = stream();
  EXPECT_EQ(deltas(to, "\uFFFD"), (Deltas{"", "", "\uFFFD"}));
}

TEST_F(TextStreamOfBytes, AStopStringNeverLeaksItsBeginning) {
  TextStream to = stream({"STOP"});
  EXPECT_EQ(deltas(to, "aSTSTOPb"), (Deltas{"a", "", "", "ST", "", "", "", ""}));
  EXPECT_TRUE(to.stopped());
  EXPECT_EQ(to.matched_stop(), "STOP");
  EXPECT_EQ(to.finish(), "");
}

TEST_F(TextStreamOfBytes, WhatOnlyBeganLikeAStopStringComesInTheEnd) {
  EXPECT_EQ(whole("xaab", {"aaa", ""}), "xaab");
  EXPECT_EQ(whole("xaa", {"aaa"}), "xaa");
}

TEST_F(TextStreamOfBytes, TheEarliestStopStringCutsTheText) {
  EXPECT_EQ(whole("one two three", {"three", "two", "wo"}), "one ");
  EXPECT_EQ(whole("a\u00e9b", {"\u00e9"}), "a");
}

TEST_F(TextStreamOfBytes, WhatIsHeldBackIsNoMoreThanMayBecomeAStopString) {
  std::mt19937 random(11);
  const auto letters = [&](size_t size) {
    std::string text(size, 'a');
    for (char& letter : text) letter = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::string> stops = {letters(1 + random() % 8), letters(3 + random() % 8)};
    const std::string text = letters(40);
    TextStream to = stream(stops);
    std::string shown;
    for (size_t size = 1; size <= text.size() && !to.stopped(); ++size) {
      shown += to.push(byte(text[size - 1]));
      const std::string_view so_far = std::string_view(text).substr(0, size);
      size_t end = size;  // of what is certain
      for (const std::string& stop : stops) end = std::min(end, so_far.find(stop));
      const bool found = end < size;
      for (size_t begin = 0; begin < end && !found; ++begin) {
        const std::string_view rest = so_far.substr(begin);
        if (stops[0].starts_with(rest) || stops[1].starts_with(rest)) end = begin;
      }
      ASSERT_EQ(shown, so_far.substr(0, end)) << stops[0] << " " << stops[1] << " " << so_far;
    }
    const size_t stop = std::min(text.find(stops[0]), text.find(stops[1]));
    EXPECT_EQ(to.stopped(), stop != std::string::npos);
  }
}

TEST_F(TextStreamOfBytes, AStopStringInsideOneTokenIsFound) {
  TextStream to = stream({"he"});
  EXPECT_EQ(to.push(264), "t");  // "the"
  EXPECT_TRUE(to.stopped());
}

TEST_F(TextStreamOfBytes, ControlTokensSayNothing) {
  TextStream to = stream();
  EXPECT_EQ(to.push(2), "");
  EXPECT_EQ(to.push(265), " the");
}

TEST_F(TextStreamOfBytes, AControlTokenIsTextIfItIsToBeShown) {
  const TokenId control = *tokenizer_->bos();
  ASSERT_TRUE(tokenizer_->is_control(control));
  EXPECT_EQ(TextStream(*tokenizer_, {}).push(control), "");
  EXPECT_EQ(TextStream(*tokenizer_, {}, {control}).push(control), tokenizer_->piece(control));
}

}  // namespace
}  // namespace winnow
