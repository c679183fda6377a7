// Walking over UTF-8. Bytes that form no character count as one character each, so that every byte
// string has a well-defined sequence of characters and no loop can stall.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::jinja {

struct Utf8Char {
  int32_t code = 0;      // code point, or -1 for a stray byte
  size_t num_bytes = 1;  // >= 1
};

// The character that begins at `at`. Requires at < text.size().
Utf8Char utf8_at(std::string_view text, size_t at);
size_t utf8_length(std::string_view text);
// Byte offsets of every character, and text.size() at the end.
std::vector<size_t> utf8_offsets(std::string_view text);
// Where `part` begins first at or after `from`, or npos; in linear time, whatever the two hold.
size_t find_bytes(std::string_view text, std::string_view part, size_t from = 0);
void utf8_append(std::string& out, int32_t code);

// What Python calls white space (str.isspace, str.strip, str.split).
bool is_space(int32_t code);
// The length of the run of white space at the start, or at the end, of `text`.
size_t leading_space(std::string_view text);
size_t trailing_space(std::string_view text);

}  // namespace winnow::jinja
