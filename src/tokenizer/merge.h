// Merging: the one loop both BPE families share. Of all neighbours that may merge, the pair with
// the lowest rank goes first, the leftmost among equals, until none is left.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "tokenizer/rank_queue.h"

namespace winnow {

struct Merge {
  uint32_t rank = 0;
  TokenId id = 0;
};

class SymbolMerger {
 public:
  // Offsets within a word are 32 bits wide; longer words are cut by the caller.
  static constexpr size_t kMaxWordBytes = size_t{1} << 30;

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
      merge_by_rank(find_merge);
    }
    return symbols_;
  }

 private:
  // Below this, scanning all ranks for the lowest beats keeping a queue.
  static constexpr size_t kMaxScanned = 32;
  static constexpr uint32_t kNoMerge = UINT32_MAX;
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Pending {
    uint32_t rank = kNoMerge;
    TokenId id = 0;
  };
  struct Node {
    Symbol symbol;
    uint32_t previous, next;
    Pending pending;  // of the pair that begins here
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

  // Ranks from the lowest up, each with all its pairs in one walk from left to right.
  template <class FindMerge>
  void merge_by_rank(const FindMerge& find_merge) {
    const auto count = static_cast<uint32_t>(symbols_.size());
    nodes_.resize(count);
    for (uint32_t i = 0; i < count; ++i)
      nodes_[i] = {symbols_[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, {}};
    urgent_below_ = 0;
    for (uint32_t i = 0; i < count; ++i) queue_pair(find_merge, i);
    while (!waiting_.empty()) merge_lowest_rank(find_merge);
    symbols_.clear();
    for (uint32_t i = 0; i != kNone; i = nodes_[i].next) symbols_.push_back(nodes_[i].symbol);
  }

  template <class FindMerge>
  void merge_lowest_rank(const FindMerge& find_merge) {
    const uint32_t rank = waiting_.take_lowest(positions_);
    urgent_below_ = rank + 1;
    for (const uint32_t left : positions_) {
      merge_urgent(find_merge, urgent_key(rank, left));
      // A position whose pair has changed since is out of date; the change has queued its own.
      if (nodes_[left].pending.rank == rank) merge_pair(find_merge, left);
    }
    merge_urgent(find_merge, UINT64_MAX);
  }

  // What has come up during the walk and goes before `limit`.
  template <class FindMerge>
  void merge_urgent(const FindMerge& find_merge, uint64_t limit) {
    while (!urgent_.empty() && urgent_.front() < limit) {
      std::pop_heap(urgent_.begin(), urgent_.end(), std::greater<>());
      const uint64_t lowest = urgent_.back();
      urgent_.pop_back();
      const auto left = static_cast<uint32_t>(lowest);
      if (nodes_[left].pending.rank == lowest >> 32) merge_pair(find_merge, left);
    }
  }

  template <class FindMerge>
  void merge_pair(const FindMerge& find_merge, uint32_t left_idx) {
    Node& left = nodes_[left_idx];
    Node& right = nodes_[left.next];
    left.symbol = {left.pending.id, left.symbol.begin, right.symbol.end};
    right.pending = Pending{};
    left.next = right.next;
    if (left.next != kNone) nodes_[left.next].previous = left_idx;
    if (left.previous != kNone) queue_pair(find_merge, left.previous);
    queue_pair(find_merge, left_idx);
  }

  template <class FindMerge>
  void queue_pair(const FindMerge& find_merge, uint32_t left_idx) {
    Node& left = nodes_[left_idx];
    left.pending =
        left.next == kNone ? Pending{} : look_up(find_merge, left.symbol, nodes_[left.next].symbol);
    const uint32_t rank = left.pending.rank;
    if (rank == kNoMerge) return;
    if (rank < urgent_below_) {
      urgent_.push_back(urgent_key(rank, left_idx));
      std::push_heap(urgent_.begin(), urgent_.end(), std::greater<>());
    } else {
      waiting_.push(rank, left_idx);
    }
  }

  static uint64_t urgent_key(uint32_t rank, uint32_t left_idx) {
    return uint64_t{rank} << 32 | left_idx;
  }

  std::vector<Symbol> symbols_;
  std::vector<Node> nodes_;
  RankQueue waiting_;                // the left sides of pairs; ranks at or above urgent_below_
  std::vector<uint32_t> positions_;  // of the rank being merged
  std::vector<uint64_t> urgent_;     // a heap of the pairs of all other ranks
  uint32_t urgent_below_ = 0;
};

}  // namespace winnow
