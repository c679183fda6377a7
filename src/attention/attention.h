// Dense attention of prompt and generated tokens over the paged KV cache, and the write of new K
// and V.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention_stats.h"
#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "kernels/table.h"
#include "kv/kv_store.h"

namespace winnow {

// What one layer's attention computes, besides its numbers.
struct AttentionShape {
  int heads = 0;       // query heads; a multiple of kv.layout.kv_heads
  float scale = 0;     // multiplies q . k
  float soft_cap = 0;  // logits become cap * tanh(logit / cap); 0 = none
  int window = 0;      // a query sees itself and the window - 1 tokens before it; 0 = all
};

// One sequence's new tokens at positions [begin, begin + num_tokens).
struct AttentionRows {
  int32_t begin = 0;
  int32_t num_tokens = 0;
  const float* q = nullptr;       // [num_tokens, heads, head_dim], rotated
  float* out = nullptr;           // [num_tokens, heads, head_dim], must not alias q
  std::span<const PageId> pages;  // logical order, covering begin + num_tokens tokens
};

// Memory that attention works in: grows to what the largest call needs, then is reused. One per
// caller; its contents mean nothing between calls.
struct AttentionScratch {
  AlignedBuffer<std::byte> tiles;  // one tile per thread
  AlignedBuffer<float> pieces;     // softmax states of generate_attention
  std::vector<AttentionStats> thread_stats;
};

// Positions per tile of packed rows, `group` rows each: a power of two that divides kPageTokens, so
// that tiles stand at the same absolute positions in every chunk.
int32_t dense_tile_positions(int group);

// Stores K and V of positions [begin, begin + num_tokens). k, v: [num_tokens, kv_heads, head_dim],
// K rotated.
void write_kv(const KernelTable& kernels, const KvLayerView& kv, std::span<const PageId> pages,
              int32_t begin, int32_t num_tokens, const float* k, const float* v);

// Prompt tokens of one sequence; their K and V are already in the pages. Causal. Tiles start at
// absolute positions, so a row's bits depend neither on the chunk nor on the thread count. Adds to
// `stats`, whose pairs are those of a layer without a window.
void prompt_attention(const KernelTable& kernels, const AttentionShape& shape,
                      const KvLayerView& kv, const AttentionRows& rows, ThreadPool& pool,
                      AttentionScratch& scratch, AttentionStats& stats);

// One generated token for each sequence (num_tokens == 1). The keys are cut at fixed places and the
// pieces merged in order.
void generate_attention(const KernelTable& kernels, const AttentionShape& shape,
                        const KvLayerView& kv, std::span<const AttentionRows> sequences,
                        ThreadPool& pool, AttentionScratch& scratch);

}  // namespace winnow
