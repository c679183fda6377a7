#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>

#include "attention/sparse_attention.h"
#include "support/attention_case.h"
#include "support/each_isa.h"

namespace winnow {
namespace {

constexpr int kFirst = 256;
constexpr int kTokens = 512;
constexpr int kTile = 16;

using TileKey = std::pair<int, int32_t>;  // head and first position

// Chooses every `step`-th candidate, and collects what it is told.
class EveryBlock : public GivenSelection, public SelectionObserver {
 public:
  explicit EveryBlock(int step) : step_(step) {
    for (int32_t i = 0; i < kTokens; ++i) numbers_.push_back(i * step);
  }
  // Candidates begin at 0 where there are no sinks.
  std::span<const int32_t> kept(int, int32_t, int32_t, int32_t end) const override {
    return std::span(numbers_).first(static_cast<size_t>((end + step_ - 1) / step_));
  }
  void on_tile(const TileSelection& tile) override {
    const std::lock_guard lock(mutex_);
    ends_[{tile.head, tile.first_position}] = tile.end_candidate;
    last_ = {tile.head, tile.first_position};
  }
  bool wants_probe(int, int, int32_t) const override { return true; }
  void on_probe(const TileProbe& probe) override {
    const std::lock_guard lock(mutex_);
    probes_[last_] = probe;
  }

  std::map<TileKey, int32_t> ends_;  // of the candidates
  std::map<TileKey, TileProbe> probes_;

 private:
  int step_;
  std::vector<int32_t> numbers_;
  std::mutex mutex_;
  TileKey last_;
};

struct Outputs {
  std::vector<float> dense;
  std::vector<float> sparse;
};

// One thread, so that a probe follows its tile.
Outputs attend(const KernelTable& kernels, AttentionCase& c, EveryBlock& blocks) {
  c.write(kernels, 0, kTokens);
  ThreadPool pool(1);
  AttentionScratch scratch;
  AttentionStats stats;
  const auto size = static_cast<size_t>((kTokens - kFirst) * c.row_floats());
  Outputs out{std::vector<float>(size), std::vector<float>(size)};
  prompt_attention(kernels, c.attention(), c.kv(), c.rows(kFirst, kTokens, out.dense.data()), pool,
                   scratch, stats);
  const SparseRule rule{.sink_tokens = 0};
  const SparseLayer layer{.rule = &rule, .observer = &blocks, .given = &blocks};
  sparse_prompt_attention(kernels, c.attention(), c.kv(),
                          c.rows(kFirst, kTokens, out.sparse.data()), layer, pool, scratch, stats);
  return out;
}

double output_error(const AttentionCase& c, const Outputs& out, const TileKey& tile) {
  double error = 0;
  double norm = 0;
  const int dims = c.shape().head_dim;
  for (int position = tile.second; position < tile.second + kTile; ++position) {
    const int64_t first = (position - kFirst) * c.row_floats() + int64_t{tile.first} * dims;
    for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(first + dims); ++i) {
      error += std::pow(double{out.sparse[i]} - double{out.dense[i]}, 2);
      norm += std::pow(double{out.dense[i]}, 2);
    }
  }
  return std::sqrt(error / norm);
}

// The share of the softmax on the blocks kept, mean over the tile's rows.
double mass_kept(AttentionCase& c, const TileKey& tile, int32_t end_candidate, int step) {
  const int dims = c.shape().head_dim;
  double shares = 0;
  for (int position = tile.second; position < tile.second + kTile; ++position) {
    const float* q =
        c.rows(0, kTokens, nullptr).q + position * c.row_floats() + int64_t{tile.first} * dims;
    double kept = 0;
    double all = 0;
    for (int token = 0; token <= position; ++token) {
      const int64_t row = int64_t{token} * c.shape().kv_heads + tile.first / c.shape().group;
      double dot = 0;
      for (int dim = 0; dim < dims; ++dim) {
        dot += double{q[dim]} * double{c.k()[static_cast<size_t>(row * dims + dim)]};
      }
      const double weight = std::exp(dot * double{c.attention().scale});
      const int block = token / 32;
      all += weight;
      if (block >= end_candidate || block % step == 0) kept += weight;
    }
    shares += kept / all;
  }
  return shares / kTile;
}

class DenseProbeOnEachIsa : public EachIsa {};
INSTANTIATE_TEST_SUITE_P(Isa, DenseProbeOnEachIsa, all_isas(), isa_test_name);

TEST_P(DenseProbeOnEachIsa, WhereEveryBlockIsGivenNothingIsLost) {
  AttentionCase c({.tokens = kTokens, .kv_heads = 2, .group = 2, .head_dim = 32}, 1);
  EveryBlock blocks(1);
  const Outputs out = attend(kernels(), c, blocks);
  ASSERT_EQ(blocks.probes_.size(), static_cast<size_t>(4 * (kTokens - kFirst) / kTile));
  for (const auto& [tile, probe] : blocks.probes_) {
    EXPECT_NEAR(probe.mass_kept, 1, 1e-5);
    EXPECT_LT(probe.output_error, 0.01);
  }
}

TEST_P(DenseProbeOnEachIsa, TellsTheMassAndTheErrorOfTheBlocksGiven) {
  AttentionCase c({.tokens = kTokens, .kv_heads = 2, .group = 2, .head_dim = 32}, 2);
  EveryBlock blocks(3);
  const Outputs out = attend(kernels(), c, blocks);
  for (const auto& [tile, probe] : blocks.probes_) {
    SCOPED_TRACE(testing::Message() << "head " << tile.first << ", position " << tile.second);
    EXPECT_NEAR(probe.output_error, output_error(c, out, tile), 0.01);
    EXPECT_NEAR(probe.mass_kept, mass_kept(c, tile, blocks.ends_.at(tile), 3), 0.02);
    EXPECT_LT(probe.mass_kept, 0.95);
    EXPECT_GT(probe.output_error, 0.05);
  }
}

}  // namespace
}  // namespace winnow
