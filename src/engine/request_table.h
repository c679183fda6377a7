// RequestTable: the scheduler's requests, in the orders in which they get their turn.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/request_entry.h"

namespace winnow {

// A prompt that was passed over in a step counts as so many tokens shorter.
inline constexpr int64_t kAgingTokens = 256;

// Smallest first. All ages grow alike, so that the order of two requests changes only when one of
// them gets a turn.
inline int64_t prompt_order(const RequestEntry& entry) {
  const int64_t remaining = entry.seq.running ? entry.seq.prompt_tokens - entry.seq.computed_tokens
                                              : entry.expected_tokens;
  return remaining + kAgingTokens * entry.last_turn;
}

struct FirstInPromptOrder {
  bool operator()(const RequestEntry* a, const RequestEntry* b) const {
    const int64_t order_a = prompt_order(*a);
    const int64_t order_b = prompt_order(*b);
    return order_a != order_b ? order_a < order_b : a->arrival < b->arrival;
  }
};

struct FirstAdmitted {
  bool operator()(const RequestEntry* a, const RequestEntry* b) const {
    return *a->seniority < *b->seniority;
  }
};

// Invariant: each request is in one of `waiting`, `interrupted` and `running`.
struct RequestTable {
  std::unordered_map<uint64_t, RequestEntry> entries;
  std::set<RequestEntry*, FirstInPromptOrder> waiting;  // never admitted
  std::set<RequestEntry*, FirstAdmitted> interrupted;   // preempted
  std::vector<RequestEntry*> running;                   // by seniority
};

}  // namespace winnow
