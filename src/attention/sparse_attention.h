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
  int head = 0;  // the first of num_heads query heads that share the tile
  int num_heads = 1;
  int32_t first_position = 0;
  int32_t num_positions = 0;
  int32_t block_tokens = 0;
  std::span<const int32_t> kept;  // besides the forced ones
  int32_t first_candidate = 0;    // candidates are blocks [first_candidate, end_candidate)
  int32_t end_candidate = 0;
};
// What one head of a tile lost against dense attention of the same queries, keys and values.
struct TileProbe {
  int layer_idx = 0;
  int head = 0;
  int32_t num_positions = 0;
  double mass_kept = 0;     // share of the dense softmax on the keys kept, mean over the rows
  double output_error = 0;  // |out - dense out| / |dense out|
};
class SelectionObserver {
 public:
  virtual ~SelectionObserver() = default;
  virtual void on_tile(const TileSelection& selection) = 0;
  // Whether a tile is to be computed densely as well; on_probe then follows for each of its heads.
  virtual bool wants_probe(int /*layer_idx*/, int /*head*/, int32_t /*first_position*/) const {
    return false;
  }
  virtual void on_probe(const TileProbe& /*probe*/) {}
};

// A choice made beforehand, asked for from any thread.
class GivenSelection {
 public:
  virtual ~GivenSelection() = default;
  // What the tile of a query head that begins at `first_position` keeps of blocks
  // [first_candidate, end_candidate): ascending; valid until the attention returns.
  virtual std::span<const int32_t> kept(int head, int32_t first_position, int32_t first_candidate,
                                        int32_t end_candidate) const = 0;
};

struct SparseLayer {
  int layer_idx = 0;
  const SparseRule* rule = nullptr;
  const SketchBasis* basis = nullptr;  // needed by kWinnow
  float tau = 0;                       // of kWinnow: a rule's, times its profile's factor
  SelectionObserver* observer = nullptr;
  // Takes the place of kWinnow's scores; null = none. The blocks left out then take no part.
  const GivenSelection* given = nullptr;
};

// What sparse_prompt_attention() and prompt_attention() make of their scratch memory in one layer,
// for sequences of up to `num_tokens` tokens; at most that much.
int64_t prompt_scratch_bytes(const KernelTable& kernels, const KvLayout& layout, int heads,
                             int64_t num_tokens, int num_threads);

// Attention of `rows`, all at positions of one prompt from dense_tokens on; every page before the
// last of them that is full has its summaries. Tiles start at absolute positions: a row's bits
// depend neither on the chunk nor on the thread count. Adds to `stats`.
void sparse_prompt_attention(const KernelTable& kernels, const AttentionShape& shape,
                             const KvLayerView& kv, const AttentionRows& rows,
                             const SparseLayer& sparse, ThreadPool& pool, AttentionScratch& scratch,
                             AttentionStats& stats);

}  // namespace winnow
