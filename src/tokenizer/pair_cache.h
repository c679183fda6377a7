// PairCache: within one encoding, what pairs of tokens merge into, for families in which finding
// out is slow.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "tokenizer/merge.h"

namespace winnow {

class PairCache {
 public:
  // For about `text_bytes` bytes of text.
  explicit PairCache(size_t text_bytes)
      : num_slots_(std::clamp<size_t>(std::bit_ceil(text_bytes), 64, 16384)) {}

  // The last answer for this pair, or find_merge(). Requires left and right to be tokens.
  template <class FindMerge>
  std::optional<Merge> find(TokenId left, TokenId right, const FindMerge& find_merge) {
    if (slots_.empty()) slots_.resize(num_slots_);
    const uint64_t pair =
        uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
    Slot& slot = slots_[(pair * 0x9E3779B97F4A7C15u >> 32) & (num_slots_ - 1)];
    if (slot.pair != pair) slot = {pair, find_merge()};
    return slot.merge;
  }

 private:
  struct Slot {
    uint64_t pair = UINT64_MAX;
    std::optional<Merge> merge;
  };
  size_t num_slots_;
  std::vector<Slot> slots_;
};

}  // namespace winnow
