// RequestEntry: all that the scheduler knows of one request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/scheduler.h"
#include "kv/kv_store.h"

namespace winnow {

// Invariants of a running request, between steps:
//   1. It holds the pages of its prompt and of all tokens but the newest.
//   2. Its full computed pages are filed, and `chain` names them.
//   3. `open` names the page behind those, if it is filed with the prompt's tokens.
struct RequestEntry {
  ScheduledSequence seq;
  int64_t max_new_tokens = 0;
  PromptMode mode;
  CacheUse cache;
  std::vector<PrefixCache::NodeId> chain;  // chain[i] files seq.pages[i]
  std::optional<PrefixCache::NodeId> open;
  std::vector<PageMake> made;         // how its page i was made when it last held it filed
  int32_t expected_tokens = 0;        // of the prompt, not found in the cache when it came
  uint64_t arrival = 0;               // counts requests
  int64_t last_turn = 0;              // the step since which its prompt has waited
  std::optional<uint64_t> seniority;  // counts first admissions; none before

  bool in_prompt() const { return seq.computed_tokens < seq.prompt_tokens; }
  int64_t num_pages() const { return std::ssize(seq.pages); }
  // Pages that it holds from its admission on.
  int64_t pages_at_admission() const {
    return pages_for(std::max<int64_t>(seq.prompt_tokens, std::ssize(seq.tokens) - 1));
  }
  // The last token of the longest answer needs no K and V.
  int64_t pages_at_most() const { return pages_for(seq.prompt_tokens + max_new_tokens - 1); }
  // Pages that must be there before it comes back after a preemption: with each of them room for
  // twice as much answer, so that it is not pushed out again and again, however long an answer it
  // may give.
  int64_t pages_to_come_back() const {
    const int64_t answer_pages = 1 + pages_at_admission() - pages_for(seq.prompt_tokens);
    const int32_t doublings = std::min(seq.num_preemptions, 30);
    return std::min(pages_at_most(), pages_at_admission() + (answer_pages << doublings));
  }
};

}  // namespace winnow
