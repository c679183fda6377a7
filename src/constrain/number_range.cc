#include "constrain/number_range.h"

#include <algorithm>
#include <string>

namespace winnow {
namespace {

// Digit strings of equal length from `low` to `high`; at most kMaxDigits levels deep.
StateId digits_between(GrammarBuilder& builder, std::string_view low, std::string_view high,
                       StateId next) {
  if (low.empty()) return next;
  const auto rest_between = [&](std::string_view rest_low, std::string_view rest_high) {
    return digits_between(builder, rest_low, rest_high, next);
  };
  const std::string zeros(low.size() - 1, '0'), nines(low.size() - 1, '9');
  auto first = static_cast<uint8_t>(low[0]), last = static_cast<uint8_t>(high[0]);
  if (first == last) {
    return builder.bytes(first, last, rest_between(low.substr(1), high.substr(1)));
  }
  std::vector<ByteEdge> edges;
  if (low.substr(1) != zeros) {
    edges.push_back({first, first, rest_between(low.substr(1), nines)});
    ++first;
  }
  if (high.substr(1) != nines) {
    edges.push_back({last, last, rest_between(zeros, high.substr(1))});
    --last;
  }
  if (first <= last) edges.push_back({first, last, rest_between(zeros, nines)});
  return builder.byte_edges(std::move(edges));
}

// Requires 0 <= first.
StateId naturals_between(GrammarBuilder& builder, int64_t first, int64_t last, StateId next) {
  std::vector<StateId> targets;
  int64_t length_first = 0, length_last = 9;
  for (int length = 1; length <= kMaxDigits; ++length) {
    const int64_t low = std::max(first, length_first), high = std::min(last, length_last);
    if (low <= high) {
      targets.push_back(digits_between(builder, std::to_string(low), std::to_string(high), next));
    }
    length_first = length_last + 1;
    length_last = length_last * 10 + 9;
  }
  return builder.split(std::move(targets));
}

// Requires 0 <= bounds.low.
StateId magnitudes_between(GrammarBuilder& builder, JsonRules& rules, const DecimalBounds& bounds,
                           StateId next) {
  const auto [low, high, without_low, without_high] = bounds;
  if (low > high || (low == high && (without_low || without_high))) return builder.dead_end();
  const auto point = [&](StateId digits) { return builder.literal(".", digits); };
  const StateId zeros = builder.optional(point(builder.literal("0", next)), next);
  const StateId any = builder.optional(point(rules.digits(1, kMaxDigits, next)), next);
  std::vector<StateId> targets;
  if (!without_high) targets.push_back(naturals_between(builder, high, high, zeros));
  if (low < high) {
    // More than `low`: some digit after the point is not 0.
    StateId above = builder.dead_end();
    for (int i = 0; i < kMaxDigits; ++i) {
      const StateId not_zero = builder.bytes('1', '9', rules.digits(0, i, next));
      above = builder.split({not_zero, builder.literal("0", above)});
    }
    targets.push_back(naturals_between(builder, low, low, without_low ? point(above) : any));
  }
  if (low + 1 < high) targets.push_back(naturals_between(builder, low + 1, high - 1, any));
  return builder.split(std::move(targets));
}

}  // namespace

StateId integers_between(GrammarBuilder& builder, int64_t first, int64_t last, StateId next) {
  std::vector<StateId> targets;
  if (last >= 0)
    targets.push_back(naturals_between(builder, std::max<int64_t>(first, 0), last, next));
  if (first < 0) {
    const StateId negative = naturals_between(builder, std::max<int64_t>(-last, 1), -first, next);
    targets.push_back(builder.literal("-", negative));
  }
  return builder.split(std::move(targets));
}

StateId decimals_between(GrammarBuilder& builder, JsonRules& rules, const DecimalBounds& bounds,
                         StateId next) {
  std::vector<StateId> targets;
  if (bounds.high >= 0) {
    DecimalBounds positive = bounds;
    if (bounds.low < 0) {
      positive.low = 0;
      positive.without_low = false;
    }
    targets.push_back(magnitudes_between(builder, rules, positive, next));
  }
  if (bounds.low < 0) {
    DecimalBounds negative{-bounds.high, -bounds.low, bounds.without_high, bounds.without_low};
    // Zero is written without sign.
    if (negative.low <= 0) {
      negative.low = 0;
      negative.without_low = true;
    }
    const StateId magnitude = magnitudes_between(builder, rules, negative, next);
    targets.push_back(builder.literal("-", magnitude));
  }
  return builder.split(std::move(targets));
}

}  // namespace winnow
