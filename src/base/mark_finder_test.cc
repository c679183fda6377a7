#include "base/mark_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace winnow {
namespace {

std::optional<FoundMark> found_by_search(const std::vector<std::string>& marks,
                                         std::string_view text) {
  std::optional<FoundMark> best;
  for (const std::string& mark : marks) {
    const size_t begin = mark.empty() ? std::string_view::npos : text.find(mark);
    if (begin == std::string_view::npos) continue;
    const bool better =
        !best || begin < best->begin || (begin == best->begin && mark.size() > best->text.size());
    if (better) best = FoundMark{begin, mark};
  }
  return best;
}

size_t possible_bytes_by_search(const std::vector<std::string>& marks, std::string_view text) {
  size_t longest = 0;
  for (const std::string& mark : marks) {
    for (size_t size = 0; size < mark.size() && size <= text.size(); ++size) {
      if (text.ends_with(mark.substr(0, size))) longest = std::max(longest, size);
    }
  }
  return longest;
}

TEST(MarkFinder, AgreesWithASearchOfTheWholeTextAfterEveryPart) {
  std::mt19937 random(20240607);
  const auto below = [&](size_t count) { return random() % count; };
  const auto letters = [&](size_t most) {
    std::string text(below(most + 1), 'a');
    for (char& letter : text) letter = static_cast<char>('a' + below(2) * below(2));
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::string> marks(below(5));
    for (std::string& mark : marks) mark = letters(9);
    const MarkSet set(marks);
    MarkFinder finder(set);
    std::string text;
    while (text.size() < 60) {
      const std::string part = letters(7);
      text += part;
      finder.push(part);
      const auto expected = found_by_search(marks, text);
      ASSERT_EQ(finder.found().has_value(), expected.has_value()) << text;
      if (expected) {
        ASSERT_EQ(finder.found()->begin, expected->begin) << text;
        ASSERT_EQ(finder.found()->text, expected->text) << text;
      }
      ASSERT_EQ(finder.num_possible_bytes(), possible_bytes_by_search(marks, text)) << text;
    }
  }
}

TEST(MarkFinder, WithoutMarksNothingIsFoundOrExpected) {
  const MarkSet set({"", ""});
  const MarkFinder finder(set, "any text");
  EXPECT_FALSE(finder.found());
  EXPECT_EQ(finder.num_possible_bytes(), 0U);
}

TEST(MarkFinder, OfMarksThatBeginTogetherTheLongestIsFound) {
  const MarkSet set({"<a", "<a>", "a>"});
  MarkFinder finder(set, "x<a");
  EXPECT_EQ(finder.found()->text, "<a");
  finder.push(">");
  EXPECT_EQ(finder.found()->text, "<a>");
  EXPECT_EQ(finder.found()->begin, 1U);
  EXPECT_EQ(finder.found()->end(), 4U);
}

}  // namespace
}  // namespace winnow
