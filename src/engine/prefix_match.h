// Which filed pages serve a request (law 4).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/request_entry.h"

namespace winnow {

// Filed pages, one behind the other.
struct PrefixMatch {
  std::vector<PrefixCache::NodeId> nodes;
  std::vector<PageId> pages;

  int64_t num_pages() const { return std::ssize(nodes); }
};

// How a run of its own makes page `page_idx` of a prompt of that length, and of its answer.
PageMake own_make(const PromptMode& mode, int64_t prompt_tokens, int64_t page_idx);

// Whether a page of prompt tokens made like `filed` serves a prompt whose own would be `own`.
bool serves(const PageMake& filed, const PageMake& own, bool exact);

// The filed pages that serve it behind those that it holds in `chain`. Never all of its tokens: the
// newest is always computed.
PrefixMatch match_prefix(const PrefixCache& cache, const RequestEntry& entry);

}  // namespace winnow
