#include "attention/block_select.h"

#include <algorithm>

namespace winnow {

void split_by_share(std::span<const float> shares, float least, int32_t first_block,
                    BlockSplit& split) {
  for (size_t i = 0; i < shares.size(); ++i) {
    split.add(first_block + static_cast<int32_t>(i), !(shares[i] < least));
  }
}

void split_by_best(std::span<const float> scores, float alpha, const ForcedBlocks& forced,
                   BlockSplit& split) {
  float best = 0;
  for (const float score : scores) best = std::max(best, score);
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto block = static_cast<int32_t>(i);
    const bool is_forced = block < forced.num_first || block >= forced.window_begin;
    split.add(block, is_forced || !(scores[i] < alpha * best));
  }
}

}  // namespace winnow
