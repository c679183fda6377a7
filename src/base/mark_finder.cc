#include "base/mark_finder.h"

#include <algorithm>
#include <utility>

namespace winnow {
namespace {

// How much of `mark` a text ends with after one more byte, if it ended with `matched` bytes of it.
// Requires matched < mark.size().
size_t matched_after(std::string_view mark, const std::vector<size_t>& borders, size_t matched,
                     char byte) {
  while (matched > 0 && mark[matched] != byte) matched = borders[matched];
  return mark[matched] == byte ? matched + 1 : 0;
}

}  // namespace

MarkSet::MarkSet(std::vector<std::string> texts) {
  for (std::string& text : texts) {
    if (text.empty()) continue;
    std::vector<size_t> borders(text.size() + 1);
    for (size_t n = 1; n < text.size(); ++n) {
      borders[n + 1] = matched_after(text, borders, borders[n], text[n]);
    }
    marks_.push_back({std::move(text), std::move(borders)});
  }
}

void MarkFinder::push(std::string_view text) {
  for (size_t i = 0; i < marks_.marks_.size(); ++i) {
    const MarkSet::Mark& mark = marks_.marks_[i];
    size_t matched = matched_[i];
    for (size_t pos = 0; pos < text.size(); ++pos) {
      matched = matched_after(mark.text, mark.borders, matched, text[pos]);
      if (matched < mark.text.size()) continue;
      note({num_bytes_ + pos + 1 - matched, mark.text});
      matched = mark.borders[matched];
    }
    matched_[i] = matched;
  }
  num_bytes_ += text.size();
}

void MarkFinder::note(const FoundMark& mark) {
  const bool first = !found_ || mark.begin < found_->begin;
  if (first || (mark.begin == found_->begin && mark.text.size() > found_->text.size())) {
    found_ = mark;
  }
}

size_t MarkFinder::num_possible_bytes() const {
  return matched_.empty() ? 0 : *std::max_element(matched_.begin(), matched_.end());
}

}  // namespace winnow
