#include "base/escape.h"

#include <cstdint>
#include <cstdio>

namespace winnow {
namespace {

struct Character {
  uint32_t code = 0;
  size_t num_bytes = 0;  // 0: not UTF-8
};

// The character that `text` begins with. Requires text not to be empty.
Character first_character(std::string_view text) {
  const auto byte = [&](size_t idx) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[idx]));
  };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t num_bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < num_bytes) return {};
  uint32_t code = lead & (0xFFu >> (num_bytes + 1));
  for (size_t idx = 1; idx < num_bytes; ++idx) {
    if ((byte(idx) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(idx) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kSmallest[num_bytes] || surrogate || code > 0x10FFFF) return {};
  return {code, num_bytes};
}

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
    const Character character = first_character(text.substr(pos));
    const size_t num_bytes = character.num_bytes == 0 ? 1 : character.num_bytes;
    if (pos + num_bytes > max_bytes) return out + "...";
    if (character.num_bytes == 0) {
      append_format(out, "\\x%02X", static_cast<unsigned>(static_cast<uint8_t>(text[pos])));
    } else if (character.code == '\n') {
      out += "\\n";
    } else if (character.code == '\t') {
      out += "\\t";
    } else if (character.code == '\r') {
      out += "\\r";
    } else if (character.code == '\\') {
      out += "\\\\";
    } else if (is_unsafe(character.code) && character.code < 0x80) {
      append_format(out, "\\x%02X", static_cast<unsigned>(character.code));
    } else if (is_unsafe(character.code)) {
      append_format(out, "\\u{%X}", static_cast<unsigned>(character.code));
    } else {
      out += text.substr(pos, num_bytes);
    }
    pos += num_bytes;
  }
  return out;
}

}  // namespace winnow
