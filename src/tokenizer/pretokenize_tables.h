// The published pre-tokeniser patterns, by the name that tokenizer.ggml.pre gives them.
#pragma once

#include <span>
#include <string_view>

namespace winnow {

struct PretokenizerEntry {
  std::string_view name;
  // Regular expressions in PCRE2 syntax, applied one after the other; \s and \S mean Unicode's
  // White_Space property.
  std::span<const std::string_view> patterns;
  bool ignores_merges = false;
  bool adds_bos = false;
};

std::span<const PretokenizerEntry> pretokenizer_entries();

}  // namespace winnow
