// The escapes of Python string literals.
#pragma once

#include <string>
#include <string_view>

namespace winnow::jinja {

// The text that the inside of a quoted literal stands for. Unknown escapes stay as they are;
// escapes that Python refuses (a cut \u, a code point out of range) fail.
std::string decode_string_literal(std::string_view inside);

}  // namespace winnow::jinja
