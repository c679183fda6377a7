// UTF-8: where characters end, and what is broken. Knows nothing of code point properties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace winnow {

enum class Utf8Kind {
  kCharacter,   // one well-formed character
  kBroken,      // bytes that no continuation can make well-formed
  kUnfinished,  // the text ends inside a so far well-formed character
};

struct Utf8Unit {
  Utf8Kind kind = Utf8Kind::kBroken;
  size_t num_bytes =
      1;  // of the character, or of the longest part that could have begun one (>= 1)
};

// The unit at the start of `text`. Requires a non-empty text.
Utf8Unit first_utf8_unit(std::string_view text);

// The code point of one well-formed character.
uint32_t code_point_of(std::string_view character);

// Length of the longest prefix of `text` that is well-formed.
size_t valid_utf8_prefix(std::string_view text);

// Characters that begin in `text`.
size_t num_characters(std::string_view text);

// A character of 1 to 4 bytes as one number, first byte highest; injective.
uint32_t packed_character(std::string_view character);

// `bytes` with every broken part, an unfinished end included, replaced by U+FFFD.
std::string valid_utf8(std::string_view bytes);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace winnow
