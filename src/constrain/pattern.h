// Regular expressions of JSON Schema ("pattern"), as states for the inside of a JSON string. What
// they match is spelt with the characters themselves, or with their only or shortest escape.
//
// Known: literals, ., classes, \d \w \s and their complements, escapes of characters, groups,
// alternatives, * + ? {m,n}, and ^ and $ at the ends of the whole pattern or of its alternatives.
// A pattern without ^ or $ matches anywhere in the string. The rest is refused by name.
#pragma once

#include <string_view>

#include "base/result.h"
#include "constrain/json_rules.h"

namespace winnow {

inline constexpr size_t kMaxPatternBytes = 4096;
inline constexpr int kMaxPatternDepth = 40;  // groups within groups
inline constexpr int32_t kMaxPatternRepeat = 1000;

Result<StateId> pattern_states(GrammarBuilder& builder, JsonRules& rules, std::string_view pattern,
                               StateId next);

}  // namespace winnow
