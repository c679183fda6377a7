// What one call of sparse attention has at hand, and what the tiles of both rules do alike. For
// attention/ only.
#pragma once

#include <cstdint>
#include <optional>

#include "attention/block_visits.h"
#include "attention/dense_probe.h"
#include "attention/sparse_attention.h"
#include "attention/sparse_tile.h"

namespace winnow {

// A call's constants.
struct SparseCall {
  const KernelTable& kernels;
  const AttentionShape& shape;
  const KvLayerView& kv;
  const AttentionRows& rows;
  const SparseLayer& sparse;

  const KvLayout& layout() const { return kv.layout; }
  int group() const { return shape.heads / kv.layout.kv_heads; }
  int64_t row_floats() const { return int64_t{shape.heads} * kv.layout.head_dim; }
  int32_t end() const { return rows.begin + rows.num_tokens; }
  // Of a query head at a position.
  int64_t offset(int32_t position, int head) const {
    return (position - rows.begin) * row_floats() + int64_t{head} * kv.layout.head_dim;
  }
};

// Positions [begin, end) of `group` query heads from `head` on.
struct TileRows {
  int32_t begin = 0;
  int32_t end = 0;
  int head = 0;
  int group = 1;
};

AttentionTile attention_tile(const SparseCall& call, const TileRows& rows, std::byte* scratch);
ScoreTile score_tile(const SparseCall& call, int32_t begin, int32_t end, int head,
                     std::byte* scratch);

// Visits tokens [begin, end), page by page; a tile sees what causality lets it. Requires that begin
// is a multiple of kStepTokens.
void visit_tokens(const SparseCall& call, const HeadPages& pages, const AttentionTile& tile,
                  int32_t begin, int32_t end);

// Adds tokens [begin, end), which every row sees, to `visits`. Requires multiples of kStepTokens.
void add_tokens(const HeadPages& pages, int32_t begin, int32_t end, StepVisits& visits);

// Counts rows that see all_pairs keys, of which candidate_pairs had a score and kept_pairs of those
// were kept, by the `winnow` rule.
void count_pairs(const SparseCall& call, int64_t all_pairs, int64_t candidate_pairs,
                 int64_t kept_pairs, AttentionStats& stats);

// Tells the observer, if there is one, what a tile keeps.
void report(const SparseCall& call, const TileRows& rows, int32_t block_tokens,
            const BlockSplit& split, int32_t first_candidate, int32_t end_candidate);

// A probe of the tile if the observer wants one: made where only the kept keys were visited.
std::optional<DenseProbe> wanted_probe(const SparseCall& call, const TileRows& rows,
                                       const HeadPages& pages, const AttentionTile& tile);
// Runs it and tells the observer, once the tile is finished.
void report(const SparseCall& call, const TileRows& rows, std::optional<DenseProbe>& probe);

}  // namespace winnow
