// GBNF: grammars as llama.cpp writes them ("root ::= ..."), over characters.
//
// Known: rules, comments, literals, classes and ., groups, alternatives, * + ? {m,n}, escapes
// \n \r \t \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH. References to tokens are refused. A rule may not
// call itself before any character.
#pragma once

#include <string_view>

#include "base/result.h"
#include "constrain/grammar.h"

namespace winnow {

inline constexpr size_t kMaxGbnfBytes = 256 << 10;
inline constexpr int kMaxGbnfDepth = 40;  // groups within groups
inline constexpr int32_t kMaxGbnfRepeat = 2000;

// The rule "root" of the grammar. kInvalidArgument or kUnsupported naming the line and the column,
// in characters. Requires that every declared rule of `builder` is defined.
Result<RuleId> add_gbnf(GrammarBuilder& builder, std::string_view text);

}  // namespace winnow
