#include "base/mapped_ranges.h"

#include <array>
#include <atomic>
#include <cstdint>

namespace winnow::mapped_ranges {
namespace {

// An entry is free while `begin` is 0, and cannot be found while `end` is.
struct Entry {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
  std::atomic<const char*> name{nullptr};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

// The process's, because a signal handler can reach nothing else.
std::array<Entry, 512> entries;

}  // namespace

void add(const void* begin, size_t size, const char* name) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  for (Entry& entry : entries) {
    uintptr_t free = 0;
    if (!entry.begin.compare_exchange_strong(free, address)) continue;
    entry.name.store(name);
    entry.end.store(address + size);
    return;
  }
}

void remove(const void* begin) {
  for (Entry& entry : entries) {
    if (entry.begin.load() != reinterpret_cast<uintptr_t>(begin)) continue;
    entry.end.store(0);
    entry.begin.store(0);
    return;
  }
}

const char* name_at(const void* address) {
  const auto found = reinterpret_cast<uintptr_t>(address);
  for (const Entry& entry : entries) {
    if (found < entry.end.load() && found >= entry.begin.load()) return entry.name.load();
  }
  return nullptr;
}

}  // namespace winnow::mapped_ranges
