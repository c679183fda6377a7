#include "attention/sparse_attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "attention/dense_probe.h"
#include "attention/sparse_tile.h"
#include "base/check.h"

namespace winnow {
namespace {

// Positions whose tiles share a window: the forced keys of kWinnow begin at multiples of it.
constexpr int32_t kWindowStep = 64;
// An RMS share that is spread evenly over the rows is smaller than what its best row loses; with
// this factor tau means about the largest share of a row that may be left out.
constexpr float kShareFactor = 1.6F;

// One call's constants.
struct Call {
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

AttentionTile attention_tile(const Call& call, const TileRows& rows, std::byte* scratch) {
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

ScoreTile score_tile(const Call& call, int32_t begin, int32_t end, int head, std::byte* scratch) {
  return {.q = call.rows.q + call.offset(begin, head),
          .row_stride = call.row_floats(),
          .rows = end - begin,
          .head_dim = call.layout().head_dim,
          .scale = call.shape.scale,
          .scratch = scratch};
}

// Tokens [begin, end), page by page; a tile sees what causality lets it.
void visit_tokens(const Call& call, const HeadPages& pages, const AttentionTile& tile,
                  int32_t begin, int32_t end) {
  for (int32_t page_idx = begin / kPageTokens; page_idx * kPageTokens < end; ++page_idx) {
    AttentionBlock block = pages.block(page_idx);
    block.begin_token = std::max(0, begin - block.position);
    call.kernels.attention->visit(tile, block);
  }
}

// Whole blocks that every row sees, in visits of as many steps as there can be.
class StepVisits {
 public:
  StepVisits(const Call& call, const HeadPages& pages, const AttentionTile& tile)
      : call_(call), pages_(pages), tile_(tile) {}
  ~StepVisits() { flush(); }
  StepVisits(const StepVisits&) = delete;
  StepVisits& operator=(const StepVisits&) = delete;

  void add(int32_t begin, int32_t end) {
    for (int32_t token = begin; token < end; token += kStepTokens) {
      steps_[num_steps_++] = pages_.step(token);
      if (num_steps_ == kMaxSteps) flush();
    }
  }

 private:
  void flush() {
    if (num_steps_ > 0) call_.kernels.attention->visit_steps(tile_, steps_, num_steps_);
    num_steps_ = 0;
  }

  const Call& call_;
  const HeadPages& pages_;
  const AttentionTile& tile_;
  AttentionStep steps_[kMaxSteps];
  int32_t num_steps_ = 0;
};

void report(const Call& call, const TileRows& rows, int32_t block_tokens, const BlockSplit& split,
            int32_t first_candidate, int32_t end_candidate) {
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

// A probe of the tile if the observer wants one: made where only the kept keys were visited.
std::optional<DenseProbe> wanted_probe(const Call& call, const TileRows& rows,
                                       const HeadPages& pages, const AttentionTile& tile) {
  const SelectionObserver* observer = call.sparse.observer;
  if (observer == nullptr || !observer->wants_probe(call.sparse.layer_idx, rows.head, rows.begin)) {
    return std::nullopt;
  }
  return std::make_optional<DenseProbe>(*call.kernels.attention, pages, tile);
}

// Once the tile is finished.
void report(const Call& call, const TileRows& rows, std::optional<DenseProbe>& probe) {
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

// Splits blocks [first, end) by their shares of a tile's attention, of which `state` holds the part
// of the forced keys.
void split_by_score(const Call& call, const TileRows& rows, const HeadPages& pages,
                    const AttentionState& state, int32_t first, int32_t end,
                    const SparseScratch& scratch, BlockSplit& split) {
  const BlockKernels& blocks = *call.kernels.blocks;
  const SparseLayer& sparse = call.sparse;
  const int32_t num_blocks = end - first;
  ScoreTile scored = score_tile(call, rows.begin, rows.end, rows.head, scratch.score);
  scored.rank = call.layout().sketch_rank;
  scored.projection = sparse.basis->queries_of(pages.kv_head);
  blocks.begin(scored);
  score_blocks(blocks, pages, scored, first, end, scratch.mean_logits, scratch.scores);
  blocks.shares(scratch.scores + int64_t{first} * kScoreRows, num_blocks, scored.rows,
                {state.max, state.sum}, scratch.shares);
  const float factor =
      sparse.tau_factors.empty() ? 1 : sparse.tau_factors[static_cast<size_t>(rows.head)];
  split_by_share({scratch.shares, static_cast<size_t>(num_blocks)},
                 sparse.rule->tau * factor / kShareFactor, first, split);
}

// kWinnow: kScoreRows positions of one query head.
void winnow_tile(const Call& call, const TileRows& rows, const SparseScratch& scratch,
                 AttentionStats& stats) {
  const SparseRule& rule = *call.sparse.rule;
  const KvLayout& layout = call.layout();
  const int32_t block_tokens = layout.block_tokens;
  const HeadPages pages{call.kv, call.rows.pages, rows.head / call.group()};
  PartTimer timer;

  // The forced keys: sinks, and the window up to the diagonal. They need no score, and their exact
  // mass stands in every share's denominator.
  const int32_t window_begin =
      std::max(0, (rows.begin / kWindowStep + 1) * kWindowStep - rule.window_tokens);
  const int32_t sink_end = std::min(rule.sink_tokens, window_begin);
  const AttentionTile tile = attention_tile(call, rows, scratch.attention);
  call.kernels.attention->begin(tile);
  StepVisits(call, pages, tile).add(0, sink_end);
  visit_tokens(call, pages, tile, window_begin, rows.end);
  timer.add_to(stats.attend_s);

  const int32_t first = sink_end / block_tokens;
  const int32_t end = window_begin / block_tokens;
  const int32_t num_blocks = end - first;
  const AttentionState state = call.kernels.attention->state(tile);
  BlockSplit split{scratch.kept, scratch.left_out};
  const GivenSelection* given = call.sparse.given;
  if (given != nullptr) {
    for (const int32_t block : given->kept(rows.head, rows.begin, first, end)) {
      split.add(block, true);
    }
  } else if (num_blocks > 0) {
    split_by_score(call, rows, pages, state, first, end, scratch, split);
  }
  report(call, rows, block_tokens, split, first, end);
  timer.add_to(stats.select_s);

  {
    StepVisits visits(call, pages, tile);
    for (int32_t i = 0; i < split.num_kept; ++i) {
      visits.add(split.kept[i] * block_tokens, (split.kept[i] + 1) * block_tokens);
    }
  }
  timer.add_to(stats.attend_s);
  std::optional<DenseProbe> probe = wanted_probe(call, rows, pages, tile);
  if (rule.correction && split.num_left_out > 0) {
    correct_blocks(*call.kernels.blocks, pages, split, scratch.mean_logits, scratch,
                   {state.max, state.sum, state.acc, 1, tile.queries, layout.head_dim});
  }
  timer.add_to(stats.select_s);
  call.kernels.attention->finish(tile);
  timer.add_to(stats.attend_s);
  report(call, rows, probe);

  const int64_t all_pairs = pairs_seen(rows.begin, rows.end);
  const int64_t candidate_pairs = int64_t{tile.queries} * num_blocks * block_tokens;
  const int64_t kept_pairs = int64_t{tile.queries} * split.num_kept * block_tokens;
  stats.causal_pairs += all_pairs;
  stats.kept_pairs += all_pairs - candidate_pairs + kept_pairs;
  if (given != nullptr) return;
  // Of a pair's 2 x head_dim multiply-adds: rank of bytes for its sketch, head_dim per block for
  // its mean key, and as many for the mean value of a block that is left out.
  const double sketch = 0.25 * layout.sketch_rank / layout.head_dim;
  const double mean = 0.5 / block_tokens;
  stats.selection_pairs += static_cast<double>(candidate_pairs) * (sketch + mean);
  if (rule.correction) {
    stats.selection_pairs += static_cast<double>(candidate_pairs - kept_pairs) * mean;
  }
}

// kV2 works on packed tiles; their scores are taken one query head and kScoreRows positions at a
// time.
class V2Tile {
 public:
  V2Tile(const Call& call, const TileRows& rows, const SparseScratch& scratch)
      : call_(call),
        rows_(rows),
        scratch_(scratch),
        pages_{call.kv, call.rows.pages, rows.head / call.group()},
        // Full blocks whose last token the tile's last row sees.
        num_pages_(rows.end / kPageTokens),
        lane_floats_(int64_t{num_pages_} * call.layout().blocks() * kScoreRows) {}

  void run(AttentionStats& stats);

 private:
  int32_t num_parts() const { return (rows_.end - rows_.begin + kScoreRows - 1) / kScoreRows; }
  int32_t num_lanes() const { return num_parts() * rows_.group; }
  int32_t lane_begin(int32_t lane) const { return rows_.begin + lane % num_parts() * kScoreRows; }
  int32_t lane_rows(int32_t lane) const {
    return std::min(kScoreRows, rows_.end - lane_begin(lane));
  }
  float* lane_logits(int32_t lane) const { return scratch_.mean_logits + lane * lane_floats_; }

  void score_lane(int32_t lane);
  void score_pages();
  void correct(const BlockSplit& split, const AttentionState& state);

  const Call& call_;
  const TileRows& rows_;
  const SparseScratch& scratch_;
  HeadPages pages_;
  int32_t num_pages_;
  int64_t lane_floats_;
};

// q . (mean of a page), at each of the page's blocks: the mean over its blocks' means.
void V2Tile::score_lane(int32_t lane) {
  const int32_t begin = lane_begin(lane);
  const int blocks = call_.layout().blocks();
  float* logits = lane_logits(lane);
  const ScoreTile tile = score_tile(call_, begin, begin + lane_rows(lane),
                                    rows_.head + lane / num_parts(), scratch_.score);
  call_.kernels.blocks->begin(tile);
  score_blocks(*call_.kernels.blocks, pages_, tile, 0, num_pages_ * blocks, logits, nullptr);
  for (int64_t i = 0; i < lane_floats_; i += int64_t{blocks} * kScoreRows) {
    for (int row = 0; row < kScoreRows; ++row) {
      float sum = 0;
      for (int block = 0; block < blocks; ++block) sum += logits[i + block * kScoreRows + row];
      for (int block = 0; block < blocks; ++block) {
        logits[i + block * kScoreRows + row] = sum / static_cast<float>(blocks);
      }
    }
  }
}

// S[page] = sum over the rows that see it of exp(logit - the tile's largest).
void V2Tile::score_pages() {
  const int64_t page_floats = int64_t{call_.layout().blocks()} * kScoreRows;
  const auto for_each = [&](auto&& body) {
    for (int32_t lane = 0; lane < num_lanes(); ++lane) {
      for (int32_t page = 0; page < num_pages_; ++page) {
        // The rows before do not see the page's last token.
        const int32_t first = std::max(0, (page + 1) * kPageTokens - 1 - lane_begin(lane));
        for (int32_t row = first; row < lane_rows(lane); ++row) {
          body(page, lane_logits(lane)[page * page_floats + row]);
        }
      }
    }
  };
  float max = -std::numeric_limits<float>::infinity();
  for_each([&](int32_t, float logit) { max = std::max(max, logit); });
  std::fill_n(scratch_.shares, num_pages_, 0.0F);
  for_each([&](int32_t page, float logit) { scratch_.shares[page] += std::exp2(logit - max); });
}

void V2Tile::correct(const BlockSplit& split, const AttentionState& state) {
  const KvLayout& layout = call_.layout();
  // A page enters as its blocks, each with the page's logit.
  BlockSplit blocks{scratch_.kept, scratch_.left_out + num_pages_};
  for (int32_t i = 0; i < split.num_left_out; ++i) {
    for (int block = 0; block < layout.blocks(); ++block) {
      blocks.add(split.left_out[i] * layout.blocks() + block, false);
    }
  }
  for (int32_t lane = 0; lane < num_lanes(); ++lane) {
    const int64_t row = int64_t{lane_begin(lane) - rows_.begin} * rows_.group + lane / num_parts();
    correct_blocks(*call_.kernels.blocks, pages_, blocks, lane_logits(lane), scratch_,
                   {state.max + row, state.sum + row, state.acc + row * layout.head_dim,
                    rows_.group, lane_rows(lane), layout.head_dim});
  }
}

void V2Tile::run(AttentionStats& stats) {
  const SparseRule& rule = *call_.sparse.rule;
  const AttentionKernels& attention = *call_.kernels.attention;
  PartTimer timer;
  for (int32_t lane = 0; lane < num_lanes(); ++lane) score_lane(lane);
  score_pages();
  const ForcedBlocks forced{rule.sink_blocks, rows_.begin / kPageTokens - rule.window_blocks + 1};
  BlockSplit split{scratch_.kept, scratch_.left_out};
  split_by_best({scratch_.shares, static_cast<size_t>(num_pages_)}, rule.alpha, forced, split);
  report(call_, rows_, kPageTokens, split, 0, num_pages_);
  timer.add_to(stats.select_s);

  const AttentionTile tile = attention_tile(call_, rows_, scratch_.attention);
  attention.begin(tile);
  for (int32_t i = 0; i < split.num_kept; ++i) attention.visit(tile, pages_.block(split.kept[i]));
  visit_tokens(call_, pages_, tile, num_pages_ * kPageTokens, rows_.end);
  timer.add_to(stats.attend_s);
  std::optional<DenseProbe> probe = wanted_probe(call_, rows_, pages_, tile);
  if (rule.correction && split.num_left_out > 0) correct(split, attention.state(tile));
  timer.add_to(stats.select_s);
  attention.finish(tile);
  timer.add_to(stats.attend_s);
  report(call_, rows_, probe);

  const int64_t queries = rows_.end - rows_.begin;
  const int64_t all_pairs = pairs_seen(rows_.begin, rows_.end) * rows_.group;
  const int64_t left_out = queries * rows_.group * split.num_left_out * kPageTokens;
  const auto scored = static_cast<double>(queries * rows_.group * num_pages_ * kPageTokens);
  constexpr double kMean = 0.5 / kPageTokens;
  stats.causal_pairs += all_pairs;
  stats.kept_pairs += all_pairs - left_out;
  stats.selection_pairs += scored * kMean;
  if (rule.correction) stats.selection_pairs += static_cast<double>(left_out) * kMean;
}

// How the rows are cut into tiles.
struct Tiling {
  int32_t positions = kScoreRows;  // of a tile, at multiples of it
  int group = 1;                   // query heads of a tile

  static Tiling of(SparseRuleKind kind, int group) {
    if (kind == SparseRuleKind::kWinnow) return {};
    return {dense_tile_positions(group), group};
  }
  int64_t lanes() const { return int64_t{(positions + kScoreRows - 1) / kScoreRows} * group; }
};

}  // namespace

void sparse_prompt_attention(const KernelTable& kernels, const AttentionShape& shape,
                             const KvLayerView& kv, const AttentionRows& rows,
                             const SparseLayer& sparse, ThreadPool& pool, AttentionScratch& scratch,
                             AttentionStats& stats) {
  const Call call{kernels, shape, kv, rows, sparse};
  const KvLayout& layout = kv.layout;
  CHECK(shape.window == 0 && layout.block_tokens % kStepTokens == 0);
  CHECK(sparse.rule->kind == SparseRuleKind::kV2 || sparse.basis != nullptr ||
        sparse.given != nullptr);
  CHECK(std::ssize(rows.pages) * kPageTokens >= call.end());
  if (rows.num_tokens == 0) return;
  const Tiling tiling = Tiling::of(sparse.rule->kind, call.group());
  const int64_t num_blocks = pages_for(call.end()) * layout.blocks();
  const auto arrange = [&](std::byte* memory) {
    const auto max_rows = static_cast<int32_t>(tiling.positions * tiling.group);
    return SparseScratch(memory, kernels.attention->scratch_bytes(max_rows, layout.head_dim),
                         kernels.blocks->scratch_bytes(layout.head_dim, layout.sketch_rank),
                         num_blocks, tiling.lanes());
  };
  const int64_t thread_bytes = arrange(nullptr).bytes;
  std::byte* memory = scratch.tiles.ensure(static_cast<size_t>(thread_bytes * pool.num_threads()));
  scratch.thread_stats.assign(static_cast<size_t>(pool.num_threads()), {});

  const int32_t first_tile = rows.begin / tiling.positions;
  const int64_t num_tiles = (call.end() - 1) / tiling.positions - first_tile + 1;
  const int heads = shape.heads / tiling.group;
  pool.run(num_tiles * heads, [&](int64_t task_idx, int thread_idx) {
    // Late tiles see the most keys: started first, they leave no thread alone at the end.
    const auto tile_idx = static_cast<int32_t>(num_tiles - 1 - task_idx / heads) + first_tile;
    const TileRows tile{.begin = std::max(rows.begin, tile_idx * tiling.positions),
                        .end = std::min(call.end(), (tile_idx + 1) * tiling.positions),
                        .head = static_cast<int>(task_idx % heads) * tiling.group,
                        .group = tiling.group};
    const SparseScratch tile_scratch = arrange(memory + thread_idx * thread_bytes);
    AttentionStats& thread_stats = scratch.thread_stats[static_cast<size_t>(thread_idx)];
    if (sparse.rule->kind == SparseRuleKind::kWinnow) {
      winnow_tile(call, tile, tile_scratch, thread_stats);
    } else {
      V2Tile(call, tile, tile_scratch).run(thread_stats);
    }
  });
  for (const AttentionStats& thread_stats : scratch.thread_stats) stats.add(thread_stats);
}

}  // namespace winnow
