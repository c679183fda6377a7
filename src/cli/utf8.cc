#include "cli/utf8.h"

#include <cstdint>

namespace winnow {
namespace {

struct Sequence {
  size_t size = 0;  // bytes to take: the character, or the ill-formed part that one U+FFFD replaces
  bool valid = false;
};

// The first byte fixes the length and the range of the second byte (Unicode, table 3-7), which
// rules out overlong forms, surrogates and values above U+10FFFF.
Sequence next_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

}  // namespace

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Sequence sequence = next_sequence(text.substr(at));
    if (!sequence.valid) break;
    at += sequence.size;
  }
  return at;
}

RepairedText repair_utf8(std::string_view text) {
  RepairedText repaired;
  repaired.text.reserve(text.size());
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    repaired.text.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) break;
    repaired.text.append("\xEF\xBF\xBD");
    text.remove_prefix(next_sequence(text).size);
    ++repaired.replaced;
  }
  return repaired;
}

}  // namespace winnow
