#include "engine/page_budget.h"

namespace winnow {

int32_t PageBudget::owners(PageId page) const {
  const auto found = new_owners_.find(static_cast<int32_t>(page));
  return pool_.num_owners(page) + (found == new_owners_.end() ? 0 : found->second);
}

int64_t PageBudget::cost_of_sharing(std::span<const PageId> pages) const {
  int64_t cost = 0;
  for (const PageId page : pages) cost += owners(page) == 1 ? 1 : 0;
  return cost;
}

void PageBudget::share(std::span<const PageId> pages) {
  available_ -= cost_of_sharing(pages);
  for (const PageId page : pages) ++new_owners_[static_cast<int32_t>(page)];
}

void PageBudget::release(std::span<const PageId> pages) {
  for (const PageId page : pages) {
    // With one owner it becomes free; with two, the other is the cache, which would give it up.
    if (owners(page) <= 2) ++available_;
    --new_owners_[static_cast<int32_t>(page)];
  }
}

}  // namespace winnow
