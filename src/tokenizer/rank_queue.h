// RankQueue: positions waiting for their turn, by rank; whole ranks are taken at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace winnow {

class RankQueue {
 public:
  bool empty() const { return ranks_.empty(); }

  void push(uint32_t rank, uint32_t position) {
    if (rank >= bucket_of_rank_.size()) bucket_of_rank_.resize(size_t{rank} + 1, kNoBucket);
    uint32_t& bucket = bucket_of_rank_[rank];
    if (bucket == kNoBucket) {
      bucket = unused_bucket();
      ranks_.push_back(rank);
      std::push_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    }
    buckets_[bucket].push_back(position);
  }

  // Removes the lowest rank and writes its positions, ascending, to `positions`. Requires !empty().
  uint32_t take_lowest(std::vector<uint32_t>& positions) {
    std::pop_heap(ranks_.begin(), ranks_.end(), std::greater<>());
    const uint32_t rank = ranks_.back();
    ranks_.pop_back();
    const uint32_t bucket = std::exchange(bucket_of_rank_[rank], kNoBucket);
    unused_.push_back(bucket);
    positions.clear();
    positions.swap(buckets_[bucket]);
    if (!std::is_sorted(positions.begin(), positions.end()))
      std::sort(positions.begin(), positions.end());
    return rank;
  }

 private:
  static constexpr uint32_t kNoBucket = UINT32_MAX;

  uint32_t unused_bucket() {
    if (unused_.empty()) {
      buckets_.emplace_back();
      return static_cast<uint32_t>(buckets_.size() - 1);
    }
    const uint32_t bucket = unused_.back();
    unused_.pop_back();
    return bucket;
  }

  std::vector<uint32_t> ranks_;  // a heap, each rank once
  std::vector<uint32_t> bucket_of_rank_;
  std::vector<std::vector<uint32_t>> buckets_;
  std::vector<uint32_t> unused_;  // of buckets_, all empty
};

}  // namespace winnow
