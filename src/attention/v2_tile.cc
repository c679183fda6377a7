#include "attention/v2_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace winnow {
namespace {

// kV2 works on packed tiles; their scores are taken one query head and kScoreRows positions at a
// time.
class V2Tile {
 public:
  V2Tile(const SparseCall& call, const TileRows& rows, const SparseScratch& scratch)
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

  const SparseCall& call_;
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
  {
    BlockVisits visits(attention, tile);
    for (int32_t i = 0; i < split.num_kept; ++i) visits.add(pages_.block(split.kept[i]));
  }
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

}  // namespace

void run_v2_tile(const SparseCall& call, const TileRows& rows, const SparseScratch& scratch,
                 AttentionStats& stats) {
  V2Tile(call, rows, scratch).run(stats);
}

}  // namespace winnow
