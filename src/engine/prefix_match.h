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

// How the request's own run makes its page `page_idx`.
PageMake own_make(const RequestEntry& entry, int64_t page_idx);

// The filed pages that serve it behind those that it holds in `chain`. Never all of its tokens: the
// newest is always computed.
PrefixMatch match_prefix(const PrefixCache& cache, const RequestEntry& entry);

}  // namespace winnow
