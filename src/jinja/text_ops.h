// What text methods and text filters share. Every result keeps the origin of each byte.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

enum class Side { kLeft, kRight, kBoth };

// Without `characters`: white space.
Text strip(const Text& text, const Text* characters, Side side);
// `max_count` < 0: all.
Text replace(Runtime& runtime, const Text& text, const Text& from, const Text& to, Int max_count);
// Python's split: without a separator at runs of white space, without empty parts. `max_splits` <
// 0: no bound.
std::vector<Value> split(Runtime& runtime, const Text& text, const Text* separator, Int max_splits);
std::vector<Value> rsplit(Runtime& runtime, const Text& text, const Text* separator,
                          Int max_splits);
std::vector<Value> split_lines(Runtime& runtime, const Text& text, bool keep_ends);
// Counts what utf8_offsets() of so many bytes takes.
inline void count_offsets(Runtime& runtime, size_t num_bytes) {
  runtime.step(num_bytes / 8);
  runtime.require_room(num_bytes * sizeof(size_t));
}
// Counts a search from the end, which unlike find_bytes() may take long.
void count_backward_search(Runtime& runtime, std::string_view text, std::string_view part);

// Parts with a separator between them.
class Joined {
 public:
  Joined(Runtime& runtime, Text separator) : runtime_(runtime), separator_(std::move(separator)) {}
  void add(const Text& part);
  Text take() && { return std::move(out_); }

 private:
  Runtime& runtime_;
  Text separator_;
  Text out_;
  bool empty_ = true;
};

Text to_upper(const Text& text);
Text to_lower(const Text& text);
// First character upper, the rest lower.
Text capitalize(const Text& text);
// str.title: every letter after a non-letter is upper.
Text title_by_letters(const Text& text);

}  // namespace winnow::jinja
