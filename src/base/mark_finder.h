// MarkFinder: the first of several strings in a text that comes in parts: stop strings, the markers
// within an answer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow {

// Strings that are looked for. Read-only: many searches may share one set.
class MarkSet {
 public:
  // Empty ones are left out. Costs the bytes of all.
  explicit MarkSet(std::vector<std::string> texts);

 private:
  friend class MarkFinder;
  struct Mark {
    std::string text;
    // [n]: length of the longest end of the first n bytes that is also their beginning, but not all
    // of them.
    std::vector<size_t> borders;
  };
  std::vector<Mark> marks_;
};

struct FoundMark {
  size_t begin = 0;  // bytes of the text before it
  std::string_view text = {};
  size_t end() const { return begin + text.size(); }
};

// The answers follow from the text alone, not from its parts. Costs (bytes of the text) x (marks),
// however long the marks are and however often they begin.
class MarkFinder {
 public:
  // `marks` must outlive this and what it finds.
  explicit MarkFinder(const MarkSet& marks) : marks_(marks), matched_(marks.marks_.size()) {}
  MarkFinder(const MarkSet& marks, std::string_view text) : MarkFinder(marks) { push(text); }

  // More of the text.
  void push(std::string_view text);

  // The mark that begins first in the text so far; of several the longest.
  const std::optional<FoundMark>& found() const { return found_; }
  // Length of the longest end of the text so far that may become a mark: the beginning of one, and
  // not all of it.
  size_t num_possible_bytes() const;

 private:
  void note(const FoundMark& mark);

  const MarkSet& marks_;
  std::vector<size_t> matched_;  // [mark]: bytes of it that the text ends with
  size_t num_bytes_ = 0;
  std::optional<FoundMark> found_;
};

}  // namespace winnow
