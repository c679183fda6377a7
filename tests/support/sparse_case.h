// For tests: a prompt whose rows attend sparsely, run in chunks as a decoder does, and the record
// of what its tiles kept.
#pragma once

#include <algorithm>
#include <mutex>
#include <tuple>
#include <vector>

#include "attention/sequence_summaries.h"
#include "attention/sparse_attention.h"
#include "support/attention_case.h"

namespace winnow {

struct TileRecord {
  int head = 0;
  int32_t first_position = 0;
  int32_t num_positions = 0;
  int32_t block_tokens = 0;
  int32_t first_candidate = 0;
  int32_t end_candidate = 0;
  std::vector<int32_t> kept;

  friend bool operator==(const TileRecord&, const TileRecord&) = default;
  bool has(int position) const {
    return first_position <= position && position < first_position + num_positions;
  }
  bool keeps(int32_t block) const { return std::binary_search(kept.begin(), kept.end(), block); }
  size_t num_candidates() const { return static_cast<size_t>(end_candidate - first_candidate); }
};

class SelectionRecorder : public SelectionObserver {
 public:
  void on_tile(const TileSelection& selection) override {
    const std::lock_guard lock(mutex_);
    tiles_.push_back({selection.head,
                      selection.first_position,
                      selection.num_positions,
                      selection.block_tokens,
                      selection.first_candidate,
                      selection.end_candidate,
                      {selection.kept.begin(), selection.kept.end()}});
  }
  // By head and position.
  std::vector<TileRecord> tiles() const {
    std::vector<TileRecord> sorted = tiles_;
    std::sort(sorted.begin(), sorted.end(), [](const TileRecord& a, const TileRecord& b) {
      return std::tie(a.head, a.first_position) < std::tie(b.head, b.first_position);
    });
    return sorted;
  }

 private:
  std::mutex mutex_;
  std::vector<TileRecord> tiles_;
};

struct SparseRun {
  std::vector<float> out;  // [tokens, heads, head_dim]
  std::vector<TileRecord> tiles;
  AttentionStats stats;
};

class SparseCase : public AttentionCase {
 public:
  SparseCase(CaseShape shape, const SparseRule& rule, uint32_t seed)
      : AttentionCase(with_sketches(shape), seed), rule_(rule) {
    // Pages whose queries look for some pages' keys more than for others'.
    std::mt19937 rng(seed + 1000);
    shift_pages(k(), shape.kv_heads, rng);
    shift_pages(q(), shape.heads(), rng);
  }

  const SparseRule& rule() const { return rule_; }
  int32_t sparse_begin() const { return rule_.dense_tokens; }
  int32_t sparse_end() const { return rule_.sparse_end(shape().tokens); }
  // Of the last run; null for a rule without sketches.
  const SketchBasis* basis() const { return basis_; }

  SparseRun run(const KernelTable& kernels, int chunk, ThreadPool& pool) {
    SparseRun result;
    result.out.resize(static_cast<size_t>(shape().tokens * row_floats()));
    SelectionRecorder recorder;
    summaries_ = SequenceSummaries(1);
    fill_pages(std::byte{0xff});  // NaN wherever nothing is written
    for (int begin = 0; begin < shape().tokens; begin += chunk) {
      const int end = std::min(shape().tokens, begin + chunk);
      write(kernels, begin, end);
      const int first = std::clamp(sparse_begin(), begin, end);
      const int last = std::clamp(sparse_end(), first, end);
      attend_densely(kernels, begin, first, pool, result);
      if (first < last) {
        basis_ = summaries_.update(0, kv(), pages(), last, rule_, nullptr, pool, result.stats);
        const SparseLayer layer{
            .rule = &rule_, .basis = basis_, .tau = rule_.tau, .observer = &recorder};
        sparse_prompt_attention(kernels, attention(), kv(), rows_of(first, last, result), layer,
                                pool, scratch_, result.stats);
      }
      attend_densely(kernels, last, end, pool, result);
    }
    result.tiles = recorder.tiles();
    return result;
  }

  // What a row of a tile attends to given what the tile kept.
  std::vector<Expected> expected_of(const TileRecord& tile, int position, int head,
                                    double product_epsilon) const {
    ExpectedRow row(*this, position, head, product_epsilon);
    add_tokens(row, 0, tile.first_candidate * tile.block_tokens, position);
    for (int32_t block = tile.first_candidate; block < tile.end_candidate; ++block) {
      const int first = block * tile.block_tokens;
      if (tile.keeps(block)) {
        add_tokens(row, first, first + tile.block_tokens, position);
      } else if (rule_.correction) {
        row.add_mean(first, tile.block_tokens);
      }
    }
    add_tokens(row, tile.end_candidate * tile.block_tokens, shape().tokens, position);
    return row.result();
  }

 private:
  static CaseShape with_sketches(CaseShape shape) {
    shape.sketch_rank = shape.head_dim / 4;
    return shape;
  }
  void shift_pages(std::vector<float>& values, int heads, std::mt19937& rng) const {
    std::normal_distribution<float> normal;
    const size_t row = static_cast<size_t>(heads) * static_cast<size_t>(shape().head_dim);
    std::vector<float> shift(row);
    for (size_t i = 0; i < values.size(); ++i) {
      if (i % (row * kPageTokens) == 0) {
        for (float& value : shift) value = normal(rng);
      }
      values[i] += shift[i % row];
    }
  }
  static void add_tokens(ExpectedRow& row, int begin, int end, int position) {
    for (int token = begin; token < std::min(end, position + 1); ++token) row.add_token(token);
  }
  AttentionRows rows_of(int begin, int end, SparseRun& result) const {
    return rows(begin, end, result.out.data() + begin * row_floats());
  }
  void attend_densely(const KernelTable& kernels, int begin, int end, ThreadPool& pool,
                      SparseRun& result) {
    if (begin >= end) return;
    prompt_attention(kernels, attention(), kv(), rows_of(begin, end, result), pool, scratch_,
                     result.stats);
  }

  SparseRule rule_;
  SequenceSummaries summaries_{1};
  const SketchBasis* basis_ = nullptr;
  AttentionScratch scratch_;
};

}  // namespace winnow
