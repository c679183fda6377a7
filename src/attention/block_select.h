// Which blocks a tile keeps: lists of block numbers in ascending order, never masks.
#pragma once

#include <cstdint>
#include <span>

namespace winnow {

// Two lists that together hold every candidate block once, in room the caller owns.
struct BlockSplit {
  int32_t* kept = nullptr;
  int32_t* left_out = nullptr;
  int32_t num_kept = 0;
  int32_t num_left_out = 0;

  void add(int32_t block, bool keep) {
    if (keep) {
      kept[num_kept++] = block;
    } else {
      left_out[num_left_out++] = block;
    }
  }
};

// An RMS share that is spread evenly over the rows is smaller than what its best row loses; with
// this factor tau means about the largest share of a row that may be left out.
inline constexpr float kShareFactor = 1.6F;

// Keeps block first_block + i where shares[i] reaches `least`, and where it is NaN.
void split_by_share(std::span<const float> shares, float least, int32_t first_block,
                    BlockSplit& split);

// What FlashPrefill V2 forces a tile to keep besides its scores.
struct ForcedBlocks {
  int32_t num_first = 0;     // blocks [0, num_first)
  int32_t window_begin = 0;  // blocks [window_begin, ...)
};
// Keeps block i where scores[i] reaches alpha times the largest score, where it is forced, and
// where it is NaN.
void split_by_best(std::span<const float> scores, float alpha, const ForcedBlocks& forced,
                   BlockSplit& split);

}  // namespace winnow
