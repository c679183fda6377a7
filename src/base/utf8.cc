#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace winnow {
namespace {

struct LeadByte {
  size_t num_bytes;  // 0: no character begins with this byte
  uint8_t second_min, second_max;
};

// The second byte's range excludes overlong forms, surrogates and values above U+10FFFF.
LeadByte classify(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Unit first_utf8_unit(std::string_view text) {
  const LeadByte lead = classify(static_cast<uint8_t>(text[0]));
  if (lead.num_bytes == 0) return {Utf8Kind::kBroken, 1};
  uint8_t min = lead.second_min, max = lead.second_max;
  for (size_t i = 1; i < lead.num_bytes; ++i) {
    if (i == text.size()) return {Utf8Kind::kUnfinished, i};
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < min || byte > max) return {Utf8Kind::kBroken, i};
    min = 0x80;
    max = 0xBF;
  }
  return {Utf8Kind::kCharacter, lead.num_bytes};
}

uint32_t code_point_of(std::string_view character) {
  const auto lead = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return lead;
  uint32_t code = lead & (0xFFu >> (character.size() + 1));
  for (const char byte : character.substr(1))
    code = code << 6 | (static_cast<uint8_t>(byte) & 0x3F);
  return code;
}

size_t valid_utf8_prefix(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    uint64_t eight = 0;
    while (text.size() - pos >= sizeof(eight)) {
      std::memcpy(&eight, text.data() + pos, sizeof(eight));
      if ((eight & 0x8080808080808080u) != 0) break;
      pos += sizeof(eight);
    }
    if (pos == text.size()) break;
    const Utf8Unit unit = first_utf8_unit(text.substr(pos));
    if (unit.kind != Utf8Kind::kCharacter) return pos;
    pos += unit.num_bytes;
  }
  return pos;
}

size_t num_characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

uint32_t packed_character(std::string_view character) {
  uint32_t packed = 0;
  for (const char byte : character) packed = packed << 8 | static_cast<uint8_t>(byte);
  return packed;
}

std::string valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t valid = valid_utf8_prefix(bytes);
    text.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    text.append(kReplacementCharacter);
    bytes.remove_prefix(first_utf8_unit(bytes).num_bytes);
  }
  return text;
}

}  // namespace winnow
