#include "cli/attention_bench.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "attention/attention.h"
#include "attention/sequence_summaries.h"
#include "attention/sparse_attention.h"
#include "base/memory_info.h"
#include "kernels/block_kernels.h"

namespace winnow {
namespace {

// Blocks drawn at random for every tile that it is told of, so many that the tile multiplies
// `density` of the pairs it sees.
class RandomSelection : public SelectionObserver, public GivenSelection {
 public:
  RandomSelection(const AttentionBenchShape& shape, double density)
      : density_(density),
        first_tile_((shape.tokens - shape.queries) / kScoreRows),
        num_tiles_((shape.tokens - 1) / kScoreRows - first_tile_ + 1),
        kept_(static_cast<size_t>(num_tiles_) * static_cast<size_t>(shape.heads)) {}

  void on_tile(const TileSelection& tile) override {
    const size_t slot = slot_of(tile.head, tile.first_position);
    const int64_t end_position = int64_t{tile.first_position} + tile.num_positions;
    const auto pairs = static_cast<double>(pairs_seen(tile.first_position, end_position));
    const auto block_pairs = static_cast<double>(int64_t{tile.num_positions} * tile.block_tokens);
    const int32_t candidates = tile.end_candidate - tile.first_candidate;
    const double forced = pairs - candidates * block_pairs;
    const double wanted = std::round((density_ * pairs - forced) / block_pairs);
    auto to_keep = static_cast<int32_t>(std::clamp(wanted, 0.0, double{1} * candidates));
    std::minstd_rand random(static_cast<uint32_t>(slot) + 1);
    kept_[slot].clear();
    for (int32_t block = tile.first_candidate; block < tile.end_candidate; ++block) {
      std::uniform_int_distribution<int32_t> left(1, tile.end_candidate - block);
      if (left(random) > to_keep) continue;
      kept_[slot].push_back(block);
      --to_keep;
    }
  }
  std::span<const int32_t> kept(int head, int32_t first_position, int32_t, int32_t) const override {
    return kept_[slot_of(head, first_position)];
  }

 private:
  size_t slot_of(int head, int32_t first_position) const {
    const int32_t tile = first_position / kScoreRows - first_tile_;
    return static_cast<size_t>(head) * static_cast<size_t>(num_tiles_) + static_cast<size_t>(tile);
  }

  double density_;
  int32_t first_tile_;
  int32_t num_tiles_;
  std::vector<std::vector<int32_t>> kept_;  // [heads][tiles]
};

// A sequence of random tokens, and what attends over it.
class Operator {
 public:
  Operator(const KernelTable& kernels, const AttentionBenchShape& shape, KvStore& store,
           ThreadPool& pool)
      : kernels_(kernels), shape_(shape), kv_(store.layer(0)), pool_(pool) {
    for (int64_t i = 0; i < store.num_pages(); ++i) pages_.push_back(*store.pool().take());
    q_ = random_rows(shape.queries, shape.heads);
    out_.resize(q_.size());
    for (int32_t begin = 0; begin < shape.tokens; begin += kPageTokens) {
      const int32_t count = std::min(kPageTokens, shape.tokens - begin);
      const std::vector<float> k = random_rows(count, shape.kv_heads);
      const std::vector<float> v = random_rows(count, shape.kv_heads);
      write_kv(kernels, kv_, pages_, begin, count, k.data(), v.data());
    }
    rule_.dense_tokens =
        std::min(rule_.dense_tokens, (shape.tokens - shape.queries) / kPageTokens * kPageTokens);
    AttentionStats ignored;
    basis_ = summaries_.update(0, kv_, pages_, shape.tokens, rule_, nullptr, pool, ignored);
  }

  AttentionStats dense() {
    AttentionStats stats;
    prompt_attention(kernels_, attention_shape(), kv_, rows(), pool_, scratch_, stats);
    return stats;
  }
  // By its own scores, or as `given`.
  AttentionStats sparse(SelectionObserver* observer, const GivenSelection* given) {
    const SparseLayer layer{
        .rule = &rule_, .basis = basis_, .tau = rule_.tau, .observer = observer, .given = given};
    AttentionStats stats;
    sparse_prompt_attention(kernels_, attention_shape(), kv_, rows(), layer, pool_, scratch_,
                            stats);
    return stats;
  }

 private:
  // Of variance 1.
  std::vector<float> random_rows(int32_t num_rows, int heads) {
    std::vector<float> rows(static_cast<size_t>(num_rows) * static_cast<size_t>(heads) *
                            static_cast<size_t>(shape_.head_dim));
    std::uniform_real_distribution<float> value(-std::sqrt(3.0F), std::sqrt(3.0F));
    for (float& x : rows) x = value(random_);
    return rows;
  }
  AttentionShape attention_shape() const {
    return {.heads = shape_.heads, .scale = 1 / std::sqrt(static_cast<float>(shape_.head_dim))};
  }
  AttentionRows rows() {
    return {shape_.tokens - shape_.queries, shape_.queries, q_.data(), out_.data(), pages_};
  }

  const KernelTable& kernels_;
  const AttentionBenchShape& shape_;
  KvLayerView kv_;
  ThreadPool& pool_;
  std::minstd_rand random_{1};
  std::vector<PageId> pages_;
  std::vector<float> q_;
  std::vector<float> out_;
  SparseRule rule_;
  SequenceSummaries summaries_{1};
  const SketchBasis* basis_ = nullptr;
  AttentionScratch scratch_;
};

Status check_memory(const AttentionBenchShape& shape, const KvLayout& layout) {
  const int64_t row_bytes = int64_t{8} * shape.queries * shape.heads * shape.head_dim;
  const int64_t needed = pages_for(shape.tokens) * layout.page_bytes() + row_bytes;
  const int64_t available = available_memory_bytes();
  if (needed <= available) return Ok{};
  return fail(ErrorCode::kOutOfMemory,
              "queries, keys and values: expected %lld MiB of memory, found %lld MiB free",
              static_cast<long long>(needed >> 20), static_cast<long long>(available >> 20));
}

}  // namespace

Result<AttentionBenchResult> bench_attention(const KernelTable& kernels,
                                             const AttentionBenchShape& shape, double density,
                                             int64_t repetitions, ThreadPool& pool,
                                             const std::atomic<bool>& cancel) {
  const KvLayout layout{
      .kv_heads = shape.kv_heads, .head_dim = shape.head_dim, .sketch_rank = shape.head_dim / 4};
  TRY_STATUS(check_memory(shape, layout));
  TRY(const std::unique_ptr<KvStore> store,
      KvStore::create(std::span(&layout, 1), pages_for(shape.tokens)));
  Operator attention(kernels, shape, *store, pool);
  RandomSelection selection(shape, density);
  attention.sparse(&selection, nullptr);  // also warms the caches

  AttentionBenchResult result;
  // The median over the repetitions of what `run` returns in seconds.
  const auto median_ms = [&](auto&& run) -> Result<double> {
    std::vector<double> seconds;
    for (int64_t i = 0; i < repetitions; ++i) {
      seconds.push_back(run());
      if (cancel.load(std::memory_order_relaxed)) {
        return fail(ErrorCode::kInterrupted, "interrupted");
      }
    }
    std::sort(seconds.begin(), seconds.end());
    const size_t half = seconds.size() / 2;
    const double middle =
        seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
    return 1e3 * middle;
  };
  int64_t dense_pairs = 0;
  TRY(result.dense_ms, median_ms([&] {
        const PartTimer timer;
        dense_pairs = attention.dense().causal_pairs;
        return timer.seconds();
      }));
  TRY(result.sparse_ms, median_ms([&] {
        const PartTimer timer;
        result.density = attention.sparse(nullptr, &selection).density();
        return timer.seconds();
      }));
  TRY(result.select_ms,
      median_ms([&] { return attention.sparse(nullptr, nullptr).select_s / pool.num_threads(); }));
  const double operations = 4.0 * static_cast<double>(dense_pairs) * shape.head_dim;
  result.dense_operations_per_second = operations / (result.dense_ms * 1e-3);
  return result;
}

}  // namespace winnow
