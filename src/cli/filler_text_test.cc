#include "cli/filler_text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace winnow {
namespace {

TEST(FillerText, PiecesMakeUpTheText) {
  std::string unbroken(1000, 'x');
  std::string wide;
  for (int i = 0; i < 500; ++i) wide += "\xE6\x97\xA5";
  for (const std::string& text : {std::string(builtin_prose()), unbroken, wide, std::string("a"),
                                  std::string(1000, '\x80'), std::string(900, '\n')}) {
    std::string joined;
    for (const std::string_view piece : text_pieces(text)) {
      EXPECT_FALSE(piece.empty());
      EXPECT_LE(piece.size(), kMaxPieceBytes);
      joined += piece;
      EXPECT_TRUE(text != wide || piece.size() % 3 == 0);
    }
    EXPECT_EQ(joined, text);
  }
}

TEST(FillerText, TheTextComesInOrderOnceAndThenInAnother) {
  const std::string_view prose = builtin_prose();
  const size_t num_pieces = text_pieces(prose).size();
  FillerText filler(prose, 1);
  std::string first;
  std::string second;
  for (size_t i = 0; i < num_pieces; ++i) first += filler.next();
  for (size_t i = 0; i < num_pieces; ++i) second += filler.next();
  EXPECT_EQ(first, prose);
  EXPECT_NE(second, prose);
  EXPECT_EQ(second.size(), prose.size());
}

}  // namespace
}  // namespace winnow
