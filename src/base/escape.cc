#include "base/escape.h"

#include <cstdint>
#include <cstdio>

#include "base/utf8.h"

namespace winnow {
namespace {

// Characters that move the cursor, change the direction of writing or cannot be seen.
bool is_unsafe(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x200B && code <= 0x200F) || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

template <class... Args>
void append_format(std::string& out, const char* format, Args... args) {
  char text[16];
  const int size = std::snprintf(text, sizeof(text), format, args...);
  out.append(text, static_cast<size_t>(size));
}

}  // namespace

std::string escaped(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(pos));
    const bool broken = unit.kind != Utf8Kind::kCharacter;
    const size_t num_bytes = broken ? 1 : unit.num_bytes;
    const uint32_t code = broken ? 0 : code_point_of(text.substr(pos, num_bytes));
    if (pos + num_bytes > max_bytes) return out + "...";
    if (broken) {
      append_format(out, "\\x%02X", static_cast<unsigned>(static_cast<uint8_t>(text[pos])));
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else if (code == '\r') {
      out += "\\r";
    } else if (code == '\\') {
      out += "\\\\";
    } else if (is_unsafe(code) && code < 0x80) {
      append_format(out, "\\x%02X", static_cast<unsigned>(code));
    } else if (is_unsafe(code)) {
      append_format(out, "\\u{%X}", static_cast<unsigned>(code));
    } else {
      out += text.substr(pos, num_bytes);
    }
    pos += num_bytes;
  }
  return out;
}

}  // namespace winnow
