// PagePool: which pages are taken, and how many owners each has. Knows page ids only, no memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <vector>

#include "base/ids.h"

namespace winnow {

// Told when a page comes to have one owner, or no longer just one, while it stays taken.
class PageOwnersObserver {
 public:
  virtual ~PageOwnersObserver() = default;
  virtual void on_one_owner_left(PageId id) = 0;
  virtual void on_second_owner(PageId id) = 0;
};

// Invariants:
//   1. A page is free exactly when it has no owners.
//   2. num_free() + pages with owners = num_pages().
class PagePool {
 public:
  explicit PagePool(int64_t num_pages);

  int64_t num_pages() const { return static_cast<int64_t>(owners_.size()); }
  int64_t num_free() const { return static_cast<int64_t>(free_.size()); }
  // 0 = free.
  int32_t num_owners(PageId id) const;

  // A free page, lowest id first, for one owner; nothing when all are taken.
  std::optional<PageId> take();
  // One owner more. Requires that the page is taken.
  void share(PageId id);
  // One owner fewer; true if that was the last. Requires that the page is taken.
  bool give_back(PageId id);

  // At most one; null ends it. Called when the count has changed; must not change owners itself.
  void observe(PageOwnersObserver* observer);

  void check_invariants() const;

 private:
  std::vector<int32_t> owners_;  // [num_pages]
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free_;
  PageOwnersObserver* observer_ = nullptr;
};

}  // namespace winnow
