// The byte-level BPE alphabet: every byte is written as one printable character in the model file.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace winnow {

// The bytes that `symbols` stands for; nothing if a character is not of the alphabet.
std::optional<std::string> bytes_of_symbols(std::string_view symbols);

}  // namespace winnow
