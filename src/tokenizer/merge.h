// Merging: the one loop both BPE families share. Of all neighbours that may merge, the pair with
// the lowest rank goes first, the leftmost among equals, until none is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace winnow {

struct Merge {
  uint32_t rank = 0;
  TokenId id = 0;
};

class SymbolMerger {
 public:
  struct Symbol {
    TokenId id;
    uint32_t begin;  // where in the word
    uint32_t end;
  };

  void clear() { symbols_.clear(); }
  void add(Symbol symbol) { symbols_.push_back(symbol); }

  // find_merge(const Symbol& left, const Symbol& right) -> std::optional<Merge>. What is left is
  // valid until the next clear().
  template <class FindMerge>
  const std::vector<Symbol>& merge_all(const FindMerge& find_merge) {
    if (symbols_.size() <= kMaxScanned) {
      merge_by_scanning(find_merge);
    } else {
      merge_by_heap(find_merge);
    }
    return symbols_;
  }

 private:
  // Below this, scanning all ranks for the lowest beats keeping a heap.
  static constexpr size_t kMaxScanned = 32;
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Pending {
    uint32_t rank = kNoMerge;
    TokenId id = 0;
  };
  struct Links {
    uint32_t previous, next;
  };

  template <class FindMerge>
  static Pending look_up(const FindMerge& find_merge, const Symbol& left, const Symbol& right) {
    const std::optional<Merge> merge = find_merge(left, right);
    return merge ? Pending{merge->rank, merge->id} : Pending{};
  }

  template <class FindMerge>
  void merge_by_scanning(const FindMerge& find_merge) {
    size_t count = symbols_.size();
    if (count < 2) return;
    Pending pending[kMaxScanned];
    for (size_t i = 0; i + 1 < count; ++i)
      pending[i] = look_up(find_merge, symbols_[i], symbols_[i + 1]);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i)
        if (pending[i].rank < pending[best].rank) best = i;
      if (pending[best].rank == kNoMerge) break;
      symbols_[best] = {pending[best].id, symbols_[best].begin, symbols_[best + 1].end};
      --count;
      for (size_t i = best + 1; i < count; ++i) {
        symbols_[i] = symbols_[i + 1];
        if (i + 1 < count) pending[i] = pending[i + 1];
      }
      if (best > 0) pending[best - 1] = look_up(find_merge, symbols_[best - 1], symbols_[best]);
      if (best + 1 < count) pending[best] = look_up(find_merge, symbols_[best], symbols_[best + 1]);
    }
    symbols_.resize(count);
  }

  template <class FindMerge>
  void push_pair(const FindMerge& find_merge, uint32_t left) {
    const uint32_t right = links_[left].next;
    pending_[left] =
        right == kNone ? Pending{} : look_up(find_merge, symbols_[left], symbols_[right]);
    if (pending_[left].rank != kNoMerge) {
      heap_.push_back(uint64_t{pending_[left].rank} << 32 | left);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }

  template <class FindMerge>
  void merge_by_heap(const FindMerge& find_merge) {
    start_heap(find_merge);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const uint64_t lowest = heap_.back();
      heap_.pop_back();
      const auto left = static_cast<uint32_t>(lowest);
      // An entry whose pair has changed since is out of date; the change has pushed its own.
      if (pending_[left].rank != lowest >> 32) continue;
      const uint32_t right = links_[left].next;
      symbols_[left] = {pending_[left].id, symbols_[left].begin, symbols_[right].end};
      pending_[right] = Pending{};
      symbols_[right].end = symbols_[right].begin;  // empty: swept out at the end
      links_[left].next = links_[right].next;
      if (links_[left].next != kNone) links_[links_[left].next].previous = left;
      push_pair(find_merge, left);
      if (links_[left].previous != kNone) push_pair(find_merge, links_[left].previous);
    }
    std::erase_if(symbols_, [](const Symbol& symbol) { return symbol.begin == symbol.end; });
  }

  template <class FindMerge>
  void start_heap(const FindMerge& find_merge) {
    const auto count = static_cast<uint32_t>(symbols_.size());
    links_.resize(count);
    pending_.assign(count, Pending{});
    heap_.clear();
    for (uint32_t i = 0; i < count; ++i)
      links_[i] = {i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1};
    for (uint32_t i = 0; i + 1 < count; ++i) {
      pending_[i] = look_up(find_merge, symbols_[i], symbols_[i + 1]);
      if (pending_[i].rank != kNoMerge) heap_.push_back(uint64_t{pending_[i].rank} << 32 | i);
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  std::vector<Symbol> symbols_;
  std::vector<Links> links_;
  std::vector<Pending> pending_;
  std::vector<uint64_t> heap_;
};

}  // namespace winnow
