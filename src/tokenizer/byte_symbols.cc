#include "tokenizer/byte_symbols.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace winnow {
namespace {

// Bytes that stand for themselves; the other 68 are written, in order, as U+0100 and up.
constexpr bool is_own_symbol(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr int kNumSymbols = 0x144;

// Code point -> byte, or -1.
constexpr std::array<int16_t, kNumSymbols> make_symbol_table() {
  std::array<int16_t, kNumSymbols> table{};
  for (int16_t& entry : table) entry = -1;
  int next_symbol = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int symbol = is_own_symbol(byte) ? byte : next_symbol++;
    table[static_cast<size_t>(symbol)] = static_cast<int16_t>(byte);
  }
  return table;
}
constexpr auto kByteOfSymbol = make_symbol_table();

}  // namespace

std::optional<std::string> bytes_of_symbols(std::string_view symbols) {
  std::string bytes;
  bytes.reserve(symbols.size());
  while (!symbols.empty()) {
    const Utf8Unit unit = first_utf8_unit(symbols);
    if (unit.kind != Utf8Kind::kCharacter || unit.num_bytes > 2) return std::nullopt;
    const size_t code_point = code_point_of(symbols.substr(0, unit.num_bytes));
    if (code_point >= kNumSymbols || kByteOfSymbol[code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kByteOfSymbol[code_point]));
    symbols.remove_prefix(unit.num_bytes);
  }
  return bytes;
}

}  // namespace winnow
