#include "attention/sparse_decode.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "attention/piece_states.h"
#include "attention/sparse_call.h"
#include "base/check.h"

namespace winnow {
namespace {

// Blocks scored in one task. A key's part of the summaries has a tenth of the bytes of its K and V,
// so these are more keys than a piece has.
constexpr int32_t kScoreBlocks = 64;
// Memory for what heads that are computed together find out about their blocks.
constexpr int64_t kMaxHeadBytes = int64_t{64} << 20;

// One KV head of one sequence, and what is found out about its blocks.
class DecodeHead {
 public:
  DecodeHead(const KernelTable& kernels, const AttentionShape& shape, const KvLayerView& kv,
             const SparseDecodeRow& row, int kv_head)
      : call_{kernels, shape, kv, row.rows, row.sparse},
        pages_{kv, row.rows.pages, kv_head},
        stats_(row.stats) {
    const SparseRule& rule = *row.sparse.rule;
    // Only full pages have summaries, so the window grows to the last that is not.
    const int32_t window_begin =
        std::max(0, call_.end() - rule.window_tokens) / kPageTokens * kPageTokens;
    end_block_ = window_begin / block_tokens();
    first_block_ = std::min(rule.sink_tokens / block_tokens(), end_block_);
  }

  int64_t place(std::byte* memory) {
    memory_.emplace(memory, 0, 0, end_block_, 1);
    return memory_->bytes;
  }
  int32_t num_score_tasks() const { return (end_block_ + kScoreBlocks - 1) / kScoreBlocks; }
  int32_t most_kept_pieces() const { return pieces_of(num_blocks()); }
  // Known once the blocks are chosen.
  int32_t num_kept_pieces() const { return pieces_of(split_.num_kept); }

  void score(int32_t task_idx, const SparseScratch& scratch) const;
  // Attends to the forced keys, chooses among the others, and lets those left out take part.
  AttentionState choose(const SparseScratch& scratch);
  AttentionState attend(int32_t piece_idx, const SparseScratch& scratch) const;
  float* out() const { return call_.rows.out + call_.offset(call_.rows.begin, head()); }
  void count() const;

 private:
  int head() const { return pages_.kv_head * call_.group(); }
  int32_t num_blocks() const { return end_block_ - first_block_; }
  int32_t block_tokens() const { return call_.layout().block_tokens; }
  int32_t piece_blocks() const { return kPieceTokens / block_tokens(); }
  int32_t pieces_of(int32_t blocks) const { return (blocks + piece_blocks() - 1) / piece_blocks(); }
  AttentionTile tile(const SparseScratch& scratch) const {
    return attention_tile(call_, rows(), scratch.attention);
  }
  TileRows rows() const { return {call_.rows.begin, call_.end(), head(), call_.group()}; }
  ScoreTile score_rows(const SparseScratch& scratch) const;

  SparseCall call_;
  HeadPages pages_;
  AttentionStats* stats_;
  int32_t first_block_ = 0;  // candidates are blocks [first_block_, end_block_)
  int32_t end_block_ = 0;
  std::optional<SparseScratch> memory_;
  BlockSplit split_;
};

// The group's heads at one position, where a prompt's tile has positions of one head.
ScoreTile DecodeHead::score_rows(const SparseScratch& scratch) const {
  return {.q = call_.rows.q + call_.offset(call_.rows.begin, head()),
          .row_stride = call_.layout().head_dim,
          .rows = call_.group(),
          .head_dim = call_.layout().head_dim,
          .scale = call_.shape.scale,
          .rank = call_.layout().sketch_rank,
          .projection = call_.sparse.basis->queries_of(pages_.kv_head),
          .scratch = scratch.score};
}

void DecodeHead::score(int32_t task_idx, const SparseScratch& scratch) const {
  const int32_t begin = std::max(first_block_, task_idx * kScoreBlocks);
  const int32_t end = std::min(end_block_, (task_idx + 1) * kScoreBlocks);
  if (begin >= end) return;
  const ScoreTile scored = score_rows(scratch);
  call_.kernels.blocks->begin(scored);
  score_blocks(*call_.kernels.blocks, pages_, scored, begin, end, memory_->mean_logits,
               memory_->scores);
}

AttentionState DecodeHead::choose(const SparseScratch& scratch) {
  const BlockKernels& blocks = *call_.kernels.blocks;
  const AttentionTile attended = tile(scratch);
  call_.kernels.attention->begin(attended);
  {
    StepVisits visits(*call_.kernels.attention, attended);
    add_tokens(pages_, 0, first_block_ * block_tokens(), visits);
  }
  visit_tokens(call_, pages_, attended, end_block_ * block_tokens(), call_.end());
  const AttentionState state = call_.kernels.attention->state(attended);
  split_ = {memory_->kept, memory_->left_out};
  if (num_blocks() == 0) return state;

  blocks.shares(memory_->scores + int64_t{first_block_} * kScoreRows, num_blocks(), call_.group(),
                {state.max, state.sum}, memory_->shares);
  split_by_share({memory_->shares, static_cast<size_t>(num_blocks())},
                 call_.sparse.tau / kShareFactor, first_block_, split_);
  report(call_, rows(), block_tokens(), split_, first_block_, end_block_);
  if (call_.sparse.rule->correction && split_.num_left_out > 0) {
    correct_blocks(blocks, pages_, split_, memory_->mean_logits, *memory_,
                   {state.max, state.sum, state.acc, 1, call_.group(), call_.layout().head_dim});
  }
  return state;
}

AttentionState DecodeHead::attend(int32_t piece_idx, const SparseScratch& scratch) const {
  const AttentionTile attended = tile(scratch);
  call_.kernels.attention->begin(attended);
  const int32_t end = std::min(split_.num_kept, (piece_idx + 1) * piece_blocks());
  {
    StepVisits visits(*call_.kernels.attention, attended);
    for (int32_t i = piece_idx * piece_blocks(); i < end; ++i) {
      add_tokens(pages_, split_.kept[i] * block_tokens(), (split_.kept[i] + 1) * block_tokens(),
                 visits);
    }
  }
  return call_.kernels.attention->state(attended);
}

void DecodeHead::count() const {
  if (stats_ == nullptr) return;
  const int64_t block_pairs = int64_t{call_.group()} * block_tokens();
  count_pairs(call_, int64_t{call_.group()} * call_.end(), block_pairs * num_blocks(),
              block_pairs * split_.num_kept, *stats_);
}

// The heads of the sequences that are computed together.
class DecodeStep {
 public:
  DecodeStep(const KernelTable& kernels, const AttentionShape& shape, const KvLayerView& kv,
             ThreadPool& pool, AttentionScratch& scratch)
      : kernels_(kernels), shape_(shape), kv_(kv), pool_(pool), scratch_(scratch) {}

  // Takes sequences from the front as far as the memory allows, and returns how many: at least one.
  size_t take(std::span<const SparseDecodeRow> sequences);
  void run();

 private:
  int group() const { return shape_.heads / kv_.layout.kv_heads; }
  SparseScratch thread_scratch(std::byte* memory) const {
    return {memory, kernels_.attention->scratch_bytes(group(), kv_.layout.head_dim),
            kernels_.blocks->scratch_bytes(kv_.layout.head_dim, kv_.layout.sketch_rank), 0, 0};
  }
  // Runs `body(head_idx, task_idx, scratch)` for count(head) tasks of every head.
  template <class Count, class Body>
  void for_tasks(Count count, Body body) {
    int64_t most = 0;
    for (const DecodeHead& head : heads_) most = std::max<int64_t>(most, count(head));
    pool_.run(most * std::ssize(heads_), [&](int64_t idx, int thread_idx) {
      const auto head_idx = static_cast<size_t>(idx / most);
      const auto task_idx = static_cast<int32_t>(idx % most);
      if (task_idx >= count(heads_[head_idx])) return;
      body(head_idx, task_idx, thread_scratch(threads_ + thread_idx * thread_bytes_));
    });
  }

  const KernelTable& kernels_;
  const AttentionShape& shape_;
  const KvLayerView& kv_;
  ThreadPool& pool_;
  AttentionScratch& scratch_;
  std::vector<DecodeHead> heads_;
  std::byte* threads_ = nullptr;  // thread_bytes_ each
  int64_t thread_bytes_ = 0;
};

size_t DecodeStep::take(std::span<const SparseDecodeRow> sequences) {
  heads_.clear();
  int64_t head_bytes = 0;
  size_t taken = 0;
  for (; taken < sequences.size() && (taken == 0 || head_bytes < kMaxHeadBytes); ++taken) {
    const SparseDecodeRow& row = sequences[taken];
    for (int kv_head = 0; kv_head < kv_.layout.kv_heads; ++kv_head) {
      heads_.emplace_back(kernels_, shape_, kv_, row, kv_head);
      head_bytes += heads_.back().place(nullptr);
    }
  }
  thread_bytes_ = thread_scratch(nullptr).bytes;
  const int64_t all_thread_bytes = thread_bytes_ * pool_.num_threads();
  threads_ = scratch_.tiles.ensure(static_cast<size_t>(all_thread_bytes + head_bytes));
  std::byte* memory = threads_ + all_thread_bytes;
  for (DecodeHead& head : heads_) memory += head.place(memory);
  return taken;
}

void DecodeStep::run() {
  for_tasks([](const DecodeHead& head) { return head.num_score_tasks(); },
            [&](size_t head_idx, int32_t task_idx, const SparseScratch& scratch) {
              heads_[head_idx].score(task_idx, scratch);
            });
  // A head's first piece is what needs no choice; those of kept blocks follow. How many there are
  // at most is known before the choice, and what they take is little beside the pages.
  std::vector<int64_t> first_piece;
  int64_t num_pieces = 0;
  for (const DecodeHead& head : heads_) {
    first_piece.push_back(num_pieces);
    num_pieces += 1 + head.most_kept_pieces();
  }
  const int head_dim = kv_.layout.head_dim;
  const PieceStates states{scratch_.pieces.ensure(PieceStates::size(num_pieces, group(), head_dim)),
                           group(), head_dim};
  for_tasks([](const DecodeHead&) { return 1; },
            [&](size_t head_idx, int32_t, const SparseScratch& scratch) {
              states.keep(first_piece[head_idx], heads_[head_idx].choose(scratch));
            });
  for_tasks([](const DecodeHead& head) { return head.num_kept_pieces(); },
            [&](size_t head_idx, int32_t task_idx, const SparseScratch& scratch) {
              states.keep(first_piece[head_idx] + 1 + task_idx,
                          heads_[head_idx].attend(task_idx, scratch));
            });
  for_tasks([](const DecodeHead&) { return 1; },
            [&](size_t head_idx, int32_t, const SparseScratch&) {
              const int64_t first = first_piece[head_idx];
              const DecodeHead& head = heads_[head_idx];
              states.merge(first, first + 1 + head.num_kept_pieces(), head.out());
            });
  for (const DecodeHead& head : heads_) head.count();
}

}  // namespace

bool can_decode_sparsely(const AttentionShape& shape, const KvLayout& layout) {
  return shape.heads / layout.kv_heads <= kScoreRows;
}

void sparse_decode_attention(const KernelTable& kernels, const AttentionShape& shape,
                             const KvLayerView& kv, std::span<const SparseDecodeRow> sequences,
                             ThreadPool& pool, AttentionScratch& scratch) {
  CHECK(shape.window == 0 && can_decode_sparsely(shape, kv.layout));
  CHECK(kv.layout.block_tokens % kStepTokens == 0);
  for (const SparseDecodeRow& row : sequences) {
    CHECK(row.rows.num_tokens == 1 && std::ssize(row.rows.pages) * kPageTokens > row.rows.begin);
    CHECK(row.sparse.rule->kind == SparseRuleKind::kWinnow && row.sparse.basis != nullptr);
  }
  DecodeStep step(kernels, shape, kv, pool, scratch);
  while (!sequences.empty()) {
    const size_t taken = step.take(sequences);
    step.run();
    sequences = sequences.subspan(taken);
  }
}

}  // namespace winnow
