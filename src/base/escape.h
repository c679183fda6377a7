// Makes bytes from outside safe to print: in error messages, in tables, on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace winnow {

// `text` with control characters and bytes that are not UTF-8 written as \n, \t, \r, \xNN or \u{N},
// and a backslash as two. What goes beyond `max_bytes` is cut at a character and replaced by "...".
std::string escaped(std::string_view text, size_t max_bytes = 200);

}  // namespace winnow
