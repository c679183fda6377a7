#include "base/escape.h"

#include <gtest/gtest.h>

#include <string>

namespace winnow {
namespace {

TEST(Escape, PrintableTextInAnyScriptStays) {
  EXPECT_EQ(escaped("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
  EXPECT_EQ(escaped("größe 日本語 🦙"), "größe 日本語 🦙");
}

TEST(Escape, ControlCharactersAndBackslashesAreWrittenOut) {
  EXPECT_EQ(escaped("a\nb\tc\rd\\"), "a\\nb\\tc\\rd\\\\");
  EXPECT_EQ(escaped(std::string("\0\x1B[31m\x7F", 7)), "\\x00\\x1B[31m\\x7F");
  EXPECT_EQ(escaped("\u0085\u202E\u2028\uFEFF"), "\\u{85}\\u{202E}\\u{2028}\\u{FEFF}");
}

TEST(Escape, BytesThatAreNotUtf8AreWrittenOut) {
  EXPECT_EQ(escaped("\xFF"), "\\xFF");
  EXPECT_EQ(escaped("\xC3"), "\\xC3");                             // cut short
  EXPECT_EQ(escaped("\xC0\xAF"), "\\xC0\\xAF");                    // longer than needed
  EXPECT_EQ(escaped("\xED\xA0\x80"), "\\xED\\xA0\\x80");           // surrogate
  EXPECT_EQ(escaped("\xF4\x90\x80\x80"), "\\xF4\\x90\\x80\\x80");  // beyond U+10FFFF
}

TEST(Escape, LongTextIsCutAtACharacter) {
  EXPECT_EQ(escaped("abcdef", 3), "abc...");
  EXPECT_EQ(escaped("abc", 3), "abc");
  EXPECT_EQ(escaped("aéé", 2), "a...");
  EXPECT_EQ(escaped("aéé", 4), "aé...");
}

}  // namespace
}  // namespace winnow
