#include "jinja/string_literal.h"

#include <cstdint>

#include "jinja/errors.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Reads exactly `count` hex digits at `at`.
int32_t read_hex(std::string_view text, size_t at, size_t count, char escape) {
  int64_t code = 0;
  for (size_t i = 0; i < count; ++i) {
    const int digit = at + i < text.size() ? hex_digit(text[at + i]) : -1;
    if (digit < 0) fail_render(std::string("cut escape \\") + escape + " in a string literal");
    code = code * 16 + digit;
  }
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
    fail_render(std::string("escape \\") + escape + " in a string literal is no character");
  }
  return static_cast<int32_t>(code);
}

// The character of a one-letter escape, or nothing.
char simple_escape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'v':
      return '\v';
    case '\\':
    case '\'':
    case '"':
      return c;
    default:
      return '\0';
  }
}

// Decodes the escape whose letter is at `at`; returns the position after it.
size_t decode_escape(std::string_view inside, size_t at, std::string& out) {
  const char c = inside[at];
  if (const char simple = simple_escape(c)) {
    out += simple;
    return at + 1;
  }
  if (c == '\n') return at + 1;
  if (c == 'x' || c == 'u' || c == 'U') {
    const size_t count = c == 'x' ? 2 : (c == 'u' ? 4 : 8);
    utf8_append(out, read_hex(inside, at + 1, count, c));
    return at + 1 + count;
  }
  if (c >= '0' && c <= '7') {
    int32_t code = 0;
    size_t end = at;
    for (; end < inside.size() && end < at + 3 && inside[end] >= '0' && inside[end] <= '7'; ++end) {
      code = code * 8 + (inside[end] - '0');
    }
    utf8_append(out, code);
    return end;
  }
  out += '\\';
  out += c;
  return at + 1;
}

}  // namespace

std::string decode_string_literal(std::string_view inside) {
  std::string out;
  out.reserve(inside.size());
  for (size_t at = 0; at < inside.size();) {
    if (inside[at] == '\\' && at + 1 < inside.size()) {
      at = decode_escape(inside, at + 1, out);
    } else {
      out += inside[at++];
    }
  }
  return out;
}

}  // namespace winnow::jinja
