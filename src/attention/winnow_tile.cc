#include "attention/winnow_tile.h"

#include <algorithm>

namespace winnow {
namespace {

// Positions whose tiles share a window: the forced keys begin at multiples of it.
constexpr int32_t kWindowStep = 64;

// The steps stand in the order in which run() takes them.
class WinnowTile {
 public:
  WinnowTile(const SparseCall& call, const TileRows& rows, const SparseScratch& scratch)
      : call_(call),
        rows_(rows),
        scratch_(scratch),
        pages_{call.kv, call.rows.pages, rows.head / call.group()},
        tile_(attention_tile(call, rows, scratch.attention)),
        window_begin_(std::max(
            0, (rows.begin / kWindowStep + 1) * kWindowStep - call.sparse.rule->window_tokens)),
        sink_end_(std::min(call.sparse.rule->sink_tokens, window_begin_)) {}

  void run(AttentionStats& stats);

 private:
  int block_tokens() const { return call_.layout().block_tokens; }
  // Candidates are blocks [first_block(), end_block()).
  int32_t first_block() const { return sink_end_ / block_tokens(); }
  int32_t end_block() const { return window_begin_ / block_tokens(); }
  int32_t num_blocks() const { return end_block() - first_block(); }

  void visit_forced();
  void score();
  BlockSplit split() const;
  void visit_kept(const BlockSplit& split);
  void correct(const BlockSplit& split);
  void count(const BlockSplit& split, AttentionStats& stats) const;

  const SparseCall& call_;
  const TileRows& rows_;
  const SparseScratch& scratch_;
  HeadPages pages_;
  AttentionTile tile_;
  int32_t window_begin_;
  int32_t sink_end_;
};

// Sinks, and the window up to the diagonal. They need no score, and their exact mass stands in
// every share's denominator.
void WinnowTile::visit_forced() {
  call_.kernels.attention->begin(tile_);
  {
    StepVisits visits(*call_.kernels.attention, tile_);
    add_tokens(pages_, 0, sink_end_, visits);
  }
  visit_tokens(call_, pages_, tile_, window_begin_, rows_.end);
}

// The share of the rows' attention that each candidate would get.
void WinnowTile::score() {
  const BlockKernels& blocks = *call_.kernels.blocks;
  const AttentionState forced = call_.kernels.attention->state(tile_);
  ScoreTile scored = score_tile(call_, rows_.begin, rows_.end, rows_.head, scratch_.score);
  scored.rank = call_.layout().sketch_rank;
  scored.projection = call_.sparse.basis->queries_of(pages_.kv_head);
  blocks.begin(scored);
  score_blocks(blocks, pages_, scored, first_block(), end_block(), scratch_.mean_logits,
               scratch_.scores);
  blocks.shares(scratch_.scores + int64_t{first_block()} * kScoreRows, num_blocks(), scored.rows,
                {forced.max, forced.sum}, scratch_.shares);
}

BlockSplit WinnowTile::split() const {
  BlockSplit split{scratch_.kept, scratch_.left_out};
  split_by_share({scratch_.shares, static_cast<size_t>(num_blocks())},
                 call_.sparse.tau / kShareFactor, first_block(), split);
  return split;
}

void WinnowTile::visit_kept(const BlockSplit& split) {
  StepVisits visits(*call_.kernels.attention, tile_);
  for (int32_t i = 0; i < split.num_kept; ++i) {
    add_tokens(pages_, split.kept[i] * block_tokens(), (split.kept[i] + 1) * block_tokens(),
               visits);
  }
}

void WinnowTile::correct(const BlockSplit& split) {
  if (!call_.sparse.rule->correction || split.num_left_out == 0) return;
  const AttentionState state = call_.kernels.attention->state(tile_);
  correct_blocks(*call_.kernels.blocks, pages_, split, scratch_.mean_logits, scratch_,
                 {state.max, state.sum, state.acc, 1, tile_.queries, tile_.head_dim});
}

void WinnowTile::run(AttentionStats& stats) {
  PartTimer timer;
  visit_forced();
  timer.add_to(stats.attend_s);

  BlockSplit chosen{scratch_.kept, scratch_.left_out};
  const GivenSelection* given = call_.sparse.given;
  if (given != nullptr) {
    for (const int32_t block : given->kept(rows_.head, rows_.begin, first_block(), end_block())) {
      chosen.add(block, true);
    }
  } else if (num_blocks() > 0) {
    score();
    chosen = split();
  }
  report(call_, rows_, block_tokens(), chosen, first_block(), end_block());
  timer.add_to(stats.select_s);

  visit_kept(chosen);
  timer.add_to(stats.attend_s);
  std::optional<DenseProbe> probe = wanted_probe(call_, rows_, pages_, tile_);
  correct(chosen);
  timer.add_to(stats.select_s);
  call_.kernels.attention->finish(tile_);
  timer.add_to(stats.attend_s);
  report(call_, rows_, probe);
  count(chosen, stats);
}

void WinnowTile::count(const BlockSplit& split, AttentionStats& stats) const {
  const int64_t all_pairs = pairs_seen(rows_.begin, rows_.end);
  const int64_t candidate_pairs = int64_t{tile_.queries} * num_blocks() * block_tokens();
  const int64_t kept_pairs = int64_t{tile_.queries} * split.num_kept * block_tokens();
  count_pairs(call_, all_pairs, candidate_pairs, kept_pairs, stats);
}

}  // namespace

void run_winnow_tile(const SparseCall& call, const TileRows& rows, const SparseScratch& scratch,
                     AttentionStats& stats) {
  WinnowTile(call, rows, scratch).run(stats);
}

}  // namespace winnow
