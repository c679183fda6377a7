#include "attention/sparse_decode.h"

#include <gtest/gtest.h>

#include "support/each_isa.h"
#include "support/same_bits.h"
#include "support/sparse_case.h"

namespace winnow {
namespace {

using test::expect_same_bits;

using SparseDecodeOnEachIsa = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, SparseDecodeOnEachIsa, all_isas(), isa_test_name);

// One KV head kept its blocks for all its query heads at a position.
struct DecodeRun {
  std::vector<float> out;  // [positions, heads, head_dim]
  std::vector<TileRecord> tiles;
  std::vector<AttentionStats> stats;
};

class DecodeCase : public SparseCase {
 public:
  DecodeCase(const CaseShape& shape, float tau, uint32_t seed, bool correction = true)
      : SparseCase(shape, {.correction = correction, .dense_tokens = 256, .decode_tau = tau},
                   seed) {}

  // Every position as the newest of a sequence of its own, all in one call.
  DecodeRun decode(const KernelTable& kernels, std::span<const int> positions, ThreadPool& pool) {
    DecodeRun run;
    const auto row_floats = static_cast<size_t>(this->row_floats());
    run.out.assign(positions.size() * row_floats, NAN);
    run.stats.resize(positions.size());
    fill_pages(std::byte{0xff});
    write(kernels, 0, shape().tokens);
    SequenceSummaries summaries(1);
    AttentionStats ignored;
    SelectionRecorder recorder;
    std::vector<SparseDecodeRow> sequences;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int position = positions[i];
      const SketchBasis* basis =
          summaries.update(0, kv(), pages(), position, rule(), nullptr, pool, ignored);
      sequences.push_back({.rows = rows(position, position + 1, run.out.data() + i * row_floats),
                           .sparse = {.rule = &rule(),
                                      .basis = basis,
                                      .tau = rule().decode_tau,
                                      .observer = &recorder},
                           .stats = &run.stats[i]});
    }
    AttentionScratch scratch;
    sparse_decode_attention(kernels, attention(), kv(), sequences, pool, scratch);
    run.tiles = recorder.tiles();
    return run;
  }

  void expect_as_kept(Isa isa, const DecodeRun& run, std::span<const int> positions) const {
    for (const TileRecord& tile : run.tiles) {
      const auto place =
          std::find(positions.begin(), positions.end(), tile.first_position) - positions.begin();
      for (int head = tile.head; head < tile.head + shape().group; ++head) {
        const float* got = run.out.data() + place * row_floats() + int64_t{head} * shape().head_dim;
        const auto want =
            expected_of(tile, tile.first_position, head, product_epsilon(isa, shape().dtype));
        for (int dim = 0; dim < shape().head_dim; ++dim) {
          const auto& [value, bound] = want[static_cast<size_t>(dim)];
          ASSERT_TRUE(std::isfinite(got[dim]));
          ASSERT_NEAR(got[dim], value, bound)
              << "position " << tile.first_position << ", head " << head << ", dim " << dim;
        }
      }
    }
  }
};

constexpr int kPositions[] = {383, 384, 448, 639, 256, 319, 447, 511};

// On slow levels only the first few.
std::span<const int> positions_of(Isa isa) {
  return std::span(kPositions).first(is_slow(isa) ? 3 : std::size(kPositions));
}

std::vector<CaseShape> decode_shapes() {
  return {{.tokens = 640, .kv_heads = 2, .group = 1, .head_dim = 32},
          {.tokens = 640, .group = 3, .head_dim = 16, .dtype = KvDType::kF16},
          {.tokens = 640, .kv_heads = 2, .group = 7, .head_dim = 64, .soft_cap = 5},
          {.tokens = 640, .group = 16, .head_dim = 16}};
}

TEST_P(SparseDecodeOnEachIsa, RowsAttendToWhatTheirHeadKeptAndToTheMeansOfTheRest) {
  ThreadPool pool(2);
  for (const float tau : {0.0F, 0.06F}) {
    for (const CaseShape& shape : decode_shapes()) {
      for (const bool correction : {true, false}) {
        SCOPED_TRACE(testing::Message() << shape.name() << ", tau " << tau);
        DecodeCase c(shape, tau, 1, correction);
        const std::span<const int> positions = positions_of(GetParam());
        const DecodeRun run = c.decode(kernels(), positions, pool);
        ASSERT_EQ(run.tiles.size(), positions.size() * static_cast<size_t>(shape.kv_heads));
        size_t kept = 0;
        size_t candidates = 0;
        for (const TileRecord& tile : run.tiles) {
          // 64 sink tokens; the page that holds the nearest 64, and those after it.
          EXPECT_EQ(tile.first_candidate, 2);
          EXPECT_EQ(tile.end_candidate, (tile.first_position + 1 - 64) / 128 * 4);
          kept += tile.kept.size();
          candidates += tile.num_candidates();
        }
        EXPECT_TRUE(tau == 0 ? kept == candidates : 0 < kept && kept < candidates) << kept;
        ASSERT_NO_FATAL_FAILURE(c.expect_as_kept(GetParam(), run, positions));
      }
    }
  }
}

// A tile of a prompt that is one row of the same position chooses from the same blocks.
TEST_P(SparseDecodeOnEachIsa, OneHeadAloneKeepsWhatATileOfOneRowKeeps) {
  ThreadPool pool(1);
  const CaseShape shape{.tokens = 640, .kv_heads = 3, .group = 1, .head_dim = 64};
  DecodeCase c(shape, 0.1F, 2);
  for (const int position : {319, 447, 575}) {
    const DecodeRun run = c.decode(kernels(), {&position, 1}, pool);
    SelectionRecorder recorder;
    SequenceSummaries summaries(1);
    AttentionScratch scratch;
    AttentionStats stats;
    std::vector<float> out(static_cast<size_t>(c.row_floats()));
    const SketchBasis* basis =
        summaries.update(0, c.kv(), c.pages(), position, c.rule(), nullptr, pool, stats);
    sparse_prompt_attention(kernels(), c.attention(), c.kv(),
                            c.rows(position, position + 1, out.data()),
                            {.rule = &c.rule(), .basis = basis, .tau = 0.1F, .observer = &recorder},
                            pool, scratch, stats);
    EXPECT_EQ(run.tiles, recorder.tiles());
  }
}

TEST_P(SparseDecodeOnEachIsa, NeitherTheBatchNorThreadsChangeABit) {
  for (const CaseShape& shape : decode_shapes()) {
    SCOPED_TRACE(shape.name());
    DecodeCase c(shape, 0.12F, 3);
    ThreadPool one(1);
    const DecodeRun together = c.decode(kernels(), kPositions, one);
    for (const int threads : {2, 3}) {
      ThreadPool pool(threads);
      const DecodeRun got = c.decode(kernels(), kPositions, pool);
      ASSERT_NO_FATAL_FAILURE(expect_same_bits(got.out, together.out));
      ASSERT_EQ(got.tiles, together.tiles);
    }
    for (size_t i = 0; i < std::size(kPositions); ++i) {
      const DecodeRun alone = c.decode(kernels(), {kPositions + i, 1}, one);
      const auto row = static_cast<size_t>(c.row_floats());
      ASSERT_NO_FATAL_FAILURE(
          expect_same_bits(alone.out, std::span(together.out).subspan(i * row, row)));
    }
  }
}

// One of seven heads looks for one key in a block of keys that say nothing.
TEST_P(SparseDecodeOnEachIsa, TheNeedleOfOneHeadIsKept) {
  ThreadPool pool(1);
  const CaseShape shape{.tokens = 1280, .group = 7, .head_dim = 64};
  DecodeCase c(shape, 0.004F, 4);
  for (size_t i = 0; i < c.k().size(); ++i) c.k()[i] *= i % 64 < 16 ? 0.1F : 0.001F;
  constexpr int kNeedle = 651;
  constexpr int kAsking = 1279;
  for (size_t dim = 0; dim < 16; ++dim) {
    const float direction = dim % 2 == 0 ? 0.25F : -0.25F;
    c.k()[kNeedle * 64 + dim] = 16 * direction;
    c.q()[(kAsking * 7 + 3) * 64 + dim] = 12 * direction;
  }
  const int position = kAsking;
  const DecodeRun run = c.decode(kernels(), {&position, 1}, pool);
  ASSERT_EQ(run.tiles.size(), 1U);
  EXPECT_TRUE(run.tiles[0].keeps(kNeedle / 32));
}

TEST_P(SparseDecodeOnEachIsa, WhatIsNotFiniteIsNeverLeftOut) {
  ThreadPool pool(1);
  const CaseShape shape{.tokens = 640, .group = 3, .head_dim = 32};
  const int position = 600;
  for (const float bad : {NAN, INFINITY}) {
    DecodeCase bad_key(shape, 0.12F, 5);
    bad_key.k()[333 * 32 + 9] = bad;
    DecodeCase bad_query(shape, 0.12F, 5);
    bad_query.q()[(position * 3 + 1) * 32 + 5] = bad;
    for (DecodeCase* c : {&bad_key, &bad_query}) {
      const DecodeRun run = c->decode(kernels(), {&position, 1}, pool);
      ASSERT_EQ(run.tiles.size(), 1U);
      EXPECT_EQ(run.tiles[0].kept.size(), run.tiles[0].num_candidates());
    }
  }
}

TEST_P(SparseDecodeOnEachIsa, StatsCountThePairsThatWereMultiplied) {
  ThreadPool pool(2);
  const CaseShape shape{.tokens = 640, .kv_heads = 2, .group = 3, .head_dim = 16};
  DecodeCase c(shape, 0.12F, 6);
  const int position = 600;
  const DecodeRun run = c.decode(kernels(), {&position, 1}, pool);
  int64_t left_out = 0;
  for (const TileRecord& tile : run.tiles) {
    left_out += static_cast<int64_t>(tile.num_candidates() - tile.kept.size()) * 32 * 3;
  }
  EXPECT_EQ(run.stats[0].causal_pairs, 601 * 6);
  EXPECT_EQ(run.stats[0].kept_pairs, 601 * 6 - left_out);
  EXPECT_TRUE(run.stats[0].has_selection());
}

}  // namespace
}  // namespace winnow
