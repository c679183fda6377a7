// Block-sparse attention of generated tokens: as of prompts, but the rows that choose blocks
// together are the query heads of one KV head at one position. See docs/block-sparse.md.
#pragma once

#include <span>

#include "attention/attention.h"
#include "attention/attention_stats.h"
#include "attention/sparse_attention.h"

namespace winnow {

// One sequence's generated token. Every full page before the one its window begins in has its
// summaries.
struct SparseDecodeRow {
  AttentionRows rows;  // num_tokens == 1
  SparseLayer sparse;  // of kWinnow, with a basis
  AttentionStats* stats = nullptr;
};

// Whether the query heads of a KV head fit a score tile.
bool can_decode_sparsely(const AttentionShape& shape, const KvLayout& layout);

// One generated token for each sequence. A row's bits depend on its own sequence alone: work is cut
// at fixed places and merged in order. Adds to each sequence's pairs, not to its times. Requires
// can_decode_sparsely and a layer without a window.
void sparse_decode_attention(const KernelTable& kernels, const AttentionShape& shape,
                             const KvLayerView& kv, std::span<const SparseDecodeRow> sequences,
                             ThreadPool& pool, AttentionScratch& scratch);

}  // namespace winnow
