#include "kv/page_pool.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace winnow {

PagePool::PagePool(int64_t num_pages) {
  CHECK(num_pages >= 0 && num_pages <= std::numeric_limits<int32_t>::max());
  owners_.assign(static_cast<size_t>(num_pages), 0);
  std::vector<int32_t> ids(owners_.size());
  std::iota(ids.begin(), ids.end(), 0);
  free_ = decltype(free_)(std::greater<>(), std::move(ids));
}

int32_t PagePool::num_owners(PageId id) const {
  const auto idx = static_cast<int32_t>(id);
  CHECK(idx >= 0 && idx < num_pages());
  return owners_[static_cast<size_t>(idx)];
}

std::optional<PageId> PagePool::take() {
  if (free_.empty()) return std::nullopt;
  const int32_t idx = free_.top();
  free_.pop();
  owners_[static_cast<size_t>(idx)] = 1;
  return PageId{idx};
}

void PagePool::share(PageId id) {
  const int32_t taken = num_owners(id);
  CHECK(taken > 0);
  owners_[static_cast<size_t>(id)] = taken + 1;
  if (taken == 1 && observer_ != nullptr) observer_->on_second_owner(id);
}

bool PagePool::give_back(PageId id) {
  const int32_t taken = num_owners(id);
  CHECK(taken > 0);
  owners_[static_cast<size_t>(id)] = taken - 1;
  if (taken == 1) free_.push(static_cast<int32_t>(id));
  if (taken == 2 && observer_ != nullptr) observer_->on_one_owner_left(id);
  return taken == 1;
}

void PagePool::observe(PageOwnersObserver* observer) {
  CHECK(observer == nullptr || observer_ == nullptr);
  observer_ = observer;
}

void PagePool::check_invariants() const {
  CHECK(std::ranges::all_of(owners_, [](int32_t owners) { return owners >= 0; }));
  std::vector<bool> free(owners_.size(), false);
  for (auto rest = free_; !rest.empty(); rest.pop()) {
    const auto idx = static_cast<size_t>(rest.top());
    CHECK(owners_[idx] == 0 && !free[idx]);
    free[idx] = true;
  }
  CHECK(std::ranges::count(owners_, 0) == num_free());
}

}  // namespace winnow
