// Which filed pages serve a request (law 4).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/request_entry.h"

namespace winnow {

// Filed pages, one behind the other, and behind them tokens of a page that begins alike.
struct PrefixMatch {
  std::vector<PrefixCache::NodeId> nodes;
  std::vector<PageId> pages;
  std::optional<PrefixCache::CommonTokens> copied;

  int64_t num_pages() const { return std::ssize(nodes); }
  // All that must be there until it is copied.
  std::vector<PageId> used_pages() const {
    std::vector<PageId> used = pages;
    if (copied) used.push_back(copied->page);
    return used;
  }
  int32_t num_tokens() const {
    return static_cast<int32_t>(num_pages() * kPageTokens) + (copied ? copied->num_tokens : 0);
  }
};

// How a run of its own makes page `page_idx` of a prompt of that length, and of its answer.
PageMake own_make(const PromptMode& mode, int64_t prompt_tokens, int64_t page_idx);

// Whether a page of prompt tokens made like `filed` serves a prompt whose own would be `own`.
bool serves(const PageMake& filed, const PageMake& own, bool exact);

// What serves it behind the pages that it holds in `chain`. Never all of its tokens: the newest is
// always computed. Only dense tokens of the prompt are copied: where rows are sparse, those of a
// tile choose their blocks together.
PrefixMatch match_prefix(const PrefixCache& cache, const RequestEntry& entry);

}  // namespace winnow
