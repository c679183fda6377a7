#include "jinja/utf8.h"

#include <utf8proc.h>

#include <cstring>

#include "base/utf8.h"

namespace winnow::jinja {

Utf8Char utf8_at(std::string_view text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const Utf8Unit unit = first_utf8_unit(text.substr(at));
  if (unit.kind != Utf8Kind::kCharacter) return {-1, 1};
  return {static_cast<int32_t>(code_point_of(text.substr(at, unit.num_bytes))), unit.num_bytes};
}

size_t utf8_length(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; at < text.size(); at += utf8_at(text, at).num_bytes) ++count;
  return count;
}

std::vector<size_t> utf8_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  offsets.reserve(text.size() + 1);
  for (size_t at = 0; at < text.size(); at += utf8_at(text, at).num_bytes) offsets.push_back(at);
  offsets.push_back(text.size());
  return offsets;
}

size_t find_bytes(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return text.npos;
  if (part.empty()) return from;
  // glibc's memmem is linear, where std::string_view::find multiplies the two lengths.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? text.npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

void utf8_append(std::string& out, int32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(code, bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_space(int32_t code) {
  if (code < 0x80)
    return code == ' ' || (code >= 0x09 && code <= 0x0d) || (code >= 0x1c && code <= 0x1f);
  return code == 0x85 || code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) ||
         code == 0x2028 || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

size_t leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = utf8_at(text, at);
    if (!is_space(c.code)) break;
    at += c.num_bytes;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (start > 0 && end - start < 4 && (static_cast<unsigned char>(text[start]) & 0xc0) == 0x80)
      --start;
    const Utf8Char c = utf8_at(text, start);
    if (start + c.num_bytes != end || !is_space(c.code)) break;
    end = start;
  }
  return text.size() - end;
}

}  // namespace winnow::jinja
