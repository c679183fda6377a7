// PageBudget: how many pages can be had, counted on while a plan is made. Changes nothing itself.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "kv/page_pool.h"
#include "kv/prefix_cache.h"

namespace winnow {

class PageBudget {
 public:
  // Free pages, and pages that the cache would give up.
  PageBudget(const PagePool& pool, const PrefixCache& cache)
      : pool_(pool), available_(pool.num_free() + cache.num_evictable()) {}

  int64_t available() const { return available_; }
  // False, and nothing taken, if there are not so many.
  bool take(int64_t num_pages) {
    if (num_pages > available_) return false;
    available_ -= num_pages;
    return true;
  }
  // How many fewer could be had once a request owns these filed pages.
  int64_t cost_of_sharing(std::span<const PageId> pages) const;
  void share(std::span<const PageId> pages);
  // A request gives up these pages, filed or its own alone.
  void release(std::span<const PageId> pages);

 private:
  int32_t owners(PageId page) const;

  const PagePool& pool_;
  int64_t available_;
  std::unordered_map<int32_t, int32_t> new_owners_;  // page -> owners more than the pool knows of
};

}  // namespace winnow
