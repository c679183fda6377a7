// Block-sparse attention of a sequence's prompt tokens: score the blocks, keep those that matter,
// attend to them exactly, and let the rest take part as their means. See docs/block-sparse.md.
#pragma once

#include <span>

#include "attention/attention.h"
#include "attention/attention_stats.h"
#include "attention/sketch_basis.h"
#include "attention/sparse_rule.h"

namespace winnow {

// Told what a tile kept; called from any thread.
struct TileSelection {
  int layer_idx = 0;
  int head = 0;  // query head; the group's first one where the group shares a tile
  int32_t first_position = 0;
  int32_t num_positions = 0;
  int32_t block_tokens = 0;
  std::span<const int32_t> kept;  // besides the forced ones
  int32_t first_candidate = 0;    // candidates are blocks [first_candidate, end_candidate)
  int32_t end_candidate = 0;
};
class SelectionObserver {
 public:
  virtual ~SelectionObserver() = default;
  virtual void on_tile(const TileSelection& selection) = 0;
};

struct SparseLayer {
  int layer_idx = 0;
  const SparseRule* rule = nullptr;
  const SketchBasis* basis = nullptr;  // needed by kWinnow
  std::span<const float> tau_factors;  // per query head; empty = 1
  SelectionObserver* observer = nullptr;
};

// Attention of `rows`, all at positions of one prompt from dense_tokens on; every page before the
// last of them that is full has its summaries. Tiles start at absolute positions: a row's bits
// depend neither on the chunk nor on the thread count. Adds to `stats`.
void sparse_prompt_attention(const KernelTable& kernels, const AttentionShape& shape,
                             const KvLayerView& kv, const AttentionRows& rows,
                             const SparseLayer& sparse, ThreadPool& pool, AttentionScratch& scratch,
                             AttentionStats& stats);

}  // namespace winnow
