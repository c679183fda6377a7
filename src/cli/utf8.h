// Well-formed UTF-8 at the edges of the program: what comes in is checked, what goes out as JSON is
// always valid.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace winnow {

// Bytes before the first ill-formed sequence; text.size() if there is none.
size_t valid_utf8_prefix(std::string_view text);

struct RepairedText {
  std::string text;     // well-formed
  size_t replaced = 0;  // ill-formed sequences, each of which became U+FFFD
};
RepairedText repair_utf8(std::string_view text);

}  // namespace winnow
