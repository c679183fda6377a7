// States for text: characters as the byte sequences of UTF-8.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "constrain/grammar.h"

namespace winnow {

// Code points [first, last], both inclusive.
struct CodePointRange {
  uint32_t first = 0;
  uint32_t last = 0;
};

// Sorted and disjoint. Surrogates are no characters and are left out of every set.
using CharacterSet = std::vector<CodePointRange>;

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

CharacterSet normalized(std::vector<CodePointRange> ranges);
CharacterSet complement(const CharacterSet& set);
CharacterSet intersection(const CharacterSet& a, const CharacterSet& b);

// One character of `set`, then `next`. A dead end if the set is empty.
StateId any_of(GrammarBuilder& builder, const CharacterSet& set, StateId next);

// Text without `mark` in it, then `mark`, then `next`. Requires a `mark` of one or more ASCII
// characters.
StateId text_until(GrammarBuilder& builder, std::string_view mark, StateId next);

}  // namespace winnow
