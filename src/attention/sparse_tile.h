// What the tiles of both rules share: memory for one thread's tile, the walk over pages, and the
// correction. For attention/ only.
#pragma once

#include <cstdint>
#include <span>

#include "attention/attention.h"
#include "attention/attention_stats.h"
#include "attention/block_select.h"
#include "kernels/attention_kernels.h"
#include "kernels/block_kernels.h"

namespace winnow {

// Where one thread's tile keeps what it finds out about blocks. `lanes` counts its score tiles.
struct SparseScratch {
  SparseScratch(std::byte* memory, int64_t attention_bytes, int64_t score_bytes, int64_t num_blocks,
                int64_t lanes);

  std::byte* attention;   // of the AttentionTile
  std::byte* score;       // of a ScoreTile
  float* mean_logits;     // [lanes][num_blocks][kScoreRows]
  float* scores;          // [num_blocks][kScoreRows], later the weights of the correction
  float* shares;          // [num_blocks]
  int32_t* kept;          // [num_blocks]
  int32_t* left_out;      // [num_blocks], and as many again
  const float** v_means;  // [num_blocks]
  int64_t bytes;
};

// One sequence's pages of one layer and KV head.
struct HeadPages {
  const KvLayerView& kv;
  std::span<const PageId> pages;
  int kv_head = 0;

  const std::byte* page(int32_t page_idx) const {
    return kv.page(pages[static_cast<size_t>(page_idx)]);
  }
  AttentionBlock block(int32_t page_idx) const;
  // Tokens [token, token + kStepTokens).
  AttentionStep step(int32_t token) const;
};

// Scores selection blocks [begin, end) of the sequence; results stand at their numbers.
void score_blocks(const BlockKernels& kernels, const HeadPages& pages, const ScoreTile& tile,
                  int32_t begin, int32_t end, float* mean_logits, float* scores);

// Lets the blocks left out take part in rows' softmax.
void correct_blocks(const BlockKernels& kernels, const HeadPages& pages, const BlockSplit& split,
                    const float* mean_logits, const SparseScratch& scratch,
                    const CorrectedRows& rows);

}  // namespace winnow
