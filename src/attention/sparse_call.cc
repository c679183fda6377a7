#include "attention/sparse_call.h"

#include <algorithm>

namespace winnow {

AttentionTile attention_tile(const SparseCall& call, const TileRows& rows, std::byte* scratch) {
  return {.q = call.rows.q + call.offset(rows.begin, rows.head),
          .out = call.rows.out + call.offset(rows.begin, rows.head),
          .query_stride = call.row_floats(),
          .queries = rows.end - rows.begin,
          .group = rows.group,
          .head_dim = call.layout().head_dim,
          .first_position = rows.begin,
          .dtype = call.layout().dtype,
          .scale = call.shape.scale,
          .soft_cap = call.shape.soft_cap,
          .scratch = scratch};
}

ScoreTile score_tile(const SparseCall& call, int32_t begin, int32_t end, int head,
                     std::byte* scratch) {
  return {.q = call.rows.q + call.offset(begin, head),
          .row_stride = call.row_floats(),
          .rows = end - begin,
          .head_dim = call.layout().head_dim,
          .scale = call.shape.scale,
          .scratch = scratch};
}

void visit_tokens(const SparseCall& call, const HeadPages& pages, const AttentionTile& tile,
                  int32_t begin, int32_t end) {
  BlockVisits visits(*call.kernels.attention, tile);
  for (int32_t page_idx = begin / kPageTokens; page_idx * kPageTokens < end; ++page_idx) {
    AttentionBlock block = pages.block(page_idx);
    block.begin_token = std::max(0, begin - block.position);
    visits.add(block);
  }
}

void add_tokens(const HeadPages& pages, int32_t begin, int32_t end, StepVisits& visits) {
  for (int32_t token = begin; token < end; token += kStepTokens) visits.add(pages.step(token));
}

void count_pairs(const SparseCall& call, int64_t all_pairs, int64_t candidate_pairs,
                 int64_t kept_pairs, AttentionStats& stats) {
  stats.causal_pairs += all_pairs;
  stats.kept_pairs += all_pairs - candidate_pairs + kept_pairs;
  if (call.sparse.given != nullptr) return;
  // Of a pair's 2 x head_dim multiply-adds: rank of bytes for its sketch, head_dim per block for
  // its mean key, and as many for the mean value of a block that is left out.
  const KvLayout& layout = call.layout();
  const double sketch = 0.25 * layout.sketch_rank / layout.head_dim;
  const double mean = 0.5 / layout.block_tokens;
  stats.selection_pairs += static_cast<double>(candidate_pairs) * (sketch + mean);
  if (call.sparse.rule->correction) {
    stats.selection_pairs += static_cast<double>(candidate_pairs - kept_pairs) * mean;
  }
}

void report(const SparseCall& call, const TileRows& rows, int32_t block_tokens,
            const BlockSplit& split, int32_t first_candidate, int32_t end_candidate) {
  if (call.sparse.observer == nullptr) return;
  call.sparse.observer->on_tile({.layer_idx = call.sparse.layer_idx,
                                 .head = rows.head,
                                 .num_heads = rows.group,
                                 .first_position = rows.begin,
                                 .num_positions = rows.end - rows.begin,
                                 .block_tokens = block_tokens,
                                 .kept = {split.kept, static_cast<size_t>(split.num_kept)},
                                 .first_candidate = first_candidate,
                                 .end_candidate = end_candidate});
}

std::optional<DenseProbe> wanted_probe(const SparseCall& call, const TileRows& rows,
                                       const HeadPages& pages, const AttentionTile& tile) {
  const SelectionObserver* observer = call.sparse.observer;
  if (observer == nullptr || !observer->wants_probe(call.sparse.layer_idx, rows.head, rows.begin)) {
    return std::nullopt;
  }
  return std::make_optional<DenseProbe>(*call.kernels.attention, pages, tile);
}

void report(const SparseCall& call, const TileRows& rows, std::optional<DenseProbe>& probe) {
  if (!probe) return;
  probe->run();
  for (int i = 0; i < rows.group; ++i) {
    call.sparse.observer->on_probe({.layer_idx = call.sparse.layer_idx,
                                    .head = rows.head + i,
                                    .num_positions = rows.end - rows.begin,
                                    .mass_kept = probe->mass_kept(i),
                                    .output_error = probe->output_error(i)});
  }
}

}  // namespace winnow
