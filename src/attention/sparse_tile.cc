#include "attention/sparse_tile.h"

#include <algorithm>
#include <cmath>

#include "attention/page_summaries.h"

namespace winnow {

SparseScratch::SparseScratch(std::byte* memory, int64_t attention_bytes, int64_t score_bytes,
                             int64_t num_blocks, int64_t lanes) {
  int64_t used = 0;
  const auto take = [&](int64_t size_bytes) {
    std::byte* start = memory == nullptr ? nullptr : memory + used;
    used += (size_bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
    return start;
  };
  attention = take(attention_bytes);
  score = take(score_bytes);
  const int64_t row_bytes = int64_t{4} * num_blocks;
  mean_logits = reinterpret_cast<float*>(take(lanes * row_bytes * kScoreRows));
  scores = reinterpret_cast<float*>(take(row_bytes * kScoreRows));
  shares = reinterpret_cast<float*>(take(row_bytes));
  kept = reinterpret_cast<int32_t*>(take(row_bytes));
  left_out = reinterpret_cast<int32_t*>(take(2 * row_bytes));
  v_means = reinterpret_cast<const float**>(take(2 * row_bytes));
  bytes = used;
}

AttentionBlock HeadPages::block(int32_t page_idx) const {
  const std::byte* data = page(page_idx);
  return {.k = data + kv.layout.k_offset(kv_head),
          .v = data + kv.layout.v_offset(kv_head),
          .position = page_idx * kPageTokens};
}

AttentionStep HeadPages::step(int32_t token) const {
  const AttentionBlock whole = block(token / kPageTokens);
  return {whole.k, whole.v, token % kPageTokens};
}

void score_blocks(const BlockKernels& kernels, const HeadPages& pages, const ScoreTile& tile,
                  int32_t begin, int32_t end, float* mean_logits, float* scores) {
  const KvLayout& layout = pages.kv.layout;
  for (int32_t block = begin; block < end;) {
    const int32_t first = block % layout.blocks();
    const int32_t count = std::min(end - block, layout.blocks() - first);
    const BlockSummaries summaries =
        block_summaries(layout, pages.page(block / layout.blocks()), pages.kv_head, first, count);
    const int64_t offset = int64_t{block} * kScoreRows;
    kernels.score(tile, summaries, mean_logits + offset,
                  scores == nullptr ? nullptr : scores + offset);
    block += count;
  }
}

void correct_blocks(const BlockKernels& kernels, const HeadPages& pages, const BlockSplit& split,
                    const float* mean_logits, const SparseScratch& scratch,
                    const CorrectedRows& rows) {
  const KvLayout& layout = pages.kv.layout;
  for (int32_t i = 0; i < split.num_left_out; ++i) {
    const int32_t block = split.left_out[i];
    scratch.v_means[i] =
        v_mean(layout, pages.page(block / layout.blocks()), pages.kv_head, block % layout.blocks());
  }
  kernels.correct({.mean_logits = mean_logits,
                   .blocks = split.left_out,
                   .v_means = scratch.v_means,
                   .num_blocks = split.num_left_out,
                   .log2_tokens = std::log2(static_cast<float>(layout.block_tokens)),
                   .weights = scratch.scores},
                  rows);
}

}  // namespace winnow
