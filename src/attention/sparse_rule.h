// SparseRule: which blocks of keys rows attend to exactly. A prompt's rows are sparse at positions
// [dense_tokens, sparse_end), generated tokens all or none; whether a row is depends on its
// position and the prompt's length alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/kv_layout.h"

namespace winnow {

enum class SparseRuleKind {
  kWinnow,  // sketches of keys, tiles of 16 rows of one head, blocks of 32 keys
  kV2,      // FlashPrefill V2 (arXiv 2608.19758): means, packed tiles, blocks of 128 keys
};

struct SparseRule {
  SparseRuleKind kind = SparseRuleKind::kWinnow;
  bool prompt = true;                 // rows of prompts are sparse
  bool decode = false;                // generated tokens are; kWinnow
  int64_t min_tokens = 0;             // shorter prompts are dense altogether, and their answers
  bool correction = true;             // blocks that are not kept enter as one key each
  int32_t dense_tokens = 1024;        // a prompt's first tokens, dense; a multiple of kPageTokens
  int32_t tail_tokens = kPageTokens;  // its last tokens, dense, at least so many

  // kWinnow: a block is kept where its share of a tile's attention reaches this.
  float tau = 0.004F;
  // The same for a generated token, where the query heads of a KV head choose together.
  float decode_tau = 0.001F;
  int32_t sink_tokens = 64;    // first keys, always kept; a multiple of the block
  int32_t window_tokens = 64;  // keys up to the end of the tile's 64 positions; a multiple of 64

  // kV2: a block is kept where its score reaches alpha times the tile's best.
  float alpha = 0.1F;
  int32_t sink_blocks = 2;
  int32_t window_blocks = 4;
  int32_t dense_layers = 4;  // first layers, dense

  friend bool operator==(const SparseRule&, const SparseRule&) = default;

  // Where the sparse rows of a prompt end; dense_tokens if it has none.
  int32_t sparse_end(int64_t prompt_tokens) const {
    if (!prompt || prompt_tokens < min_tokens) return dense_tokens;
    const int64_t last = (prompt_tokens - tail_tokens) / kPageTokens * kPageTokens;
    return static_cast<int32_t>(std::max<int64_t>(dense_tokens, last));
  }
  // Whether the answer to a prompt attends sparsely. The keys of its first dense_tokens tokens are
  // what a basis is fitted on.
  bool sparse_answer(int64_t prompt_tokens) const {
    return decode && kind == SparseRuleKind::kWinnow &&
           prompt_tokens >= std::max<int64_t>(min_tokens, dense_tokens);
  }
  bool applies_to_layer(int layer_idx, int window) const {
    return window == 0 && (kind == SparseRuleKind::kWinnow || layer_idx >= dense_layers);
  }
};

}  // namespace winnow
