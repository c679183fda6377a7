// Numbers within bounds, as grammar states.
#pragma once

#include <cstdint>

#include "constrain/json_rules.h"

namespace winnow {

// The largest number of kMaxDigits digits.
inline constexpr int64_t kMaxWhole = 9'999'999'999'999'999;

// Requires -kMaxWhole <= bounds <= kMaxWhole; a dead end if first > last. Zero has no sign.
StateId integers_between(GrammarBuilder& builder, int64_t first, int64_t last, StateId next);

struct DecimalBounds {
  int64_t low = -kMaxWhole;
  int64_t high = kMaxWhole;
  bool without_low = false;  // exclusive
  bool without_high = false;
};

// Numbers with or without a decimal point, without exponent. Requires bounds as above.
StateId decimals_between(GrammarBuilder& builder, JsonRules& rules, const DecimalBounds& bounds,
                         StateId next);

}  // namespace winnow
