#include "attention/sparse_attention.h"

#include <gtest/gtest.h>

#include <bit>
#include <numbers>

#include "attention/page_summaries.h"
#include "support/each_isa.h"
#include "support/same_bits.h"
#include "support/sparse_case.h"

namespace winnow {
namespace {

using test::expect_same_bits;

using SparseOnEachIsa = EachIsa;
INSTANTIATE_TEST_SUITE_P(Isa, SparseOnEachIsa, all_isas(), isa_test_name);

SparseRule winnow_rule(float tau) { return {.dense_tokens = 256, .tail_tokens = 0, .tau = tau}; }

SparseRule v2_rule(float alpha) {
  return {.kind = SparseRuleKind::kV2,
          .dense_tokens = 256,
          .tail_tokens = 0,
          .alpha = alpha,
          .sink_blocks = 1,
          .window_blocks = 1,
          .dense_layers = 0};
}

// Of the tiles, every how manieth is compared with plain arithmetic in double.
size_t tile_stride(Isa isa) { return is_slow(isa) ? 17 : 5; }

std::vector<CaseShape> shapes(Isa isa) {
  std::vector<CaseShape> shapes = {
      {.tokens = 512, .kv_heads = 2, .group = 1, .head_dim = 32},
      {.tokens = 512, .group = 3, .head_dim = 16, .dtype = KvDType::kF16},
      {.tokens = 512, .group = 7, .head_dim = 16, .soft_cap = 5}};
  if (is_slow(isa)) return shapes;
  shapes.insert(shapes.end(), {{.tokens = 640, .kv_heads = 2, .group = 1, .head_dim = 64},
                               {.tokens = 640, .group = 16, .head_dim = 16},
                               {.tokens = 640, .group = 2, .head_dim = 128},
                               {.tokens = 640, .group = 1, .head_dim = 256, .dtype = KvDType::kF16},
                               {.tokens = 640, .group = 2, .head_dim = 80, .soft_cap = 30}});
  return shapes;
}

void expect_within_bounds(const SparseCase& c, const SparseRun& run, int position, int head,
                          const std::vector<AttentionCase::Expected>& want) {
  const float* got =
      run.out.data() + position * c.row_floats() + int64_t{head} * c.shape().head_dim;
  for (int dim = 0; dim < c.shape().head_dim; ++dim) {
    const auto& [value, bound] = want[static_cast<size_t>(dim)];
    ASSERT_TRUE(std::isfinite(got[dim]));
    ASSERT_NEAR(got[dim], value, bound)
        << "position " << position << ", head " << head << ", dim " << dim;
  }
}

TEST_P(SparseOnEachIsa, WithNoThresholdEveryBlockIsKeptAndTheResultIsDense) {
  ThreadPool pool(1);
  for (const SparseRule& rule : {winnow_rule(0), v2_rule(0)}) {
    for (const CaseShape& shape : shapes(GetParam())) {
      SCOPED_TRACE(shape.name());
      SparseCase c(shape, rule, 1);
      const SparseRun run = c.run(kernels(), shape.tokens, pool);
      ASSERT_FALSE(run.tiles.empty());
      for (const TileRecord& tile : run.tiles) ASSERT_EQ(tile.kept.size(), tile.num_candidates());
      EXPECT_EQ(run.stats.density(), 1);
      for (const int position : {256, 271, 300, 383, 384, 511}) {
        for (int head = 0; head < c.shape().heads(); head += 3) {
          ASSERT_NO_FATAL_FAILURE(expect_within_bounds(
              c, run, position, head,
              c.expected(position, head, product_epsilon(GetParam(), shape.dtype))));
        }
      }
    }
  }
}

TEST_P(SparseOnEachIsa, RowsAttendToWhatTheirTileKeptAndToTheMeansOfTheRest) {
  ThreadPool pool(1);
  for (const bool correction : {true, false}) {
    for (SparseRule rule : {winnow_rule(0.12F), v2_rule(0.5F)}) {
      rule.correction = correction;
      for (const CaseShape& shape : shapes(GetParam())) {
        SCOPED_TRACE(testing::Message()
                     << shape.name() << (rule.kind == SparseRuleKind::kV2 ? ", V2" : ", Winnow")
                     << (correction ? "" : ", no correction"));
        SparseCase c(shape, rule, 2);
        const SparseRun run = c.run(kernels(), shape.tokens, pool);
        size_t kept = 0;
        size_t candidates = 0;
        for (size_t i = 0; i < run.tiles.size(); ++i) {
          const TileRecord& tile = run.tiles[i];
          kept += tile.kept.size();
          candidates += tile.num_candidates();
          if (i % tile_stride(GetParam()) != 0) continue;
          const int group = rule.kind == SparseRuleKind::kV2 ? shape.group : 1;
          const int head = tile.head + static_cast<int>(i) % group;
          for (const int row : {0, tile.num_positions - 1}) {
            const int position = tile.first_position + row;
            ASSERT_NO_FATAL_FAILURE(expect_within_bounds(
                c, run, position, head,
                c.expected_of(tile, position, head, product_epsilon(GetParam(), shape.dtype))));
          }
        }
        EXPECT_LT(kept, candidates);
        EXPECT_GT(kept, 0U);
        EXPECT_LT(run.stats.density(), 1);
      }
    }
  }
}

// What a comparison of a score with its threshold says: where it may fall on either side, nothing.
struct KeptCounts {
  int certain = 0;
  int uncertain = 0;
};

void expect_kept_as(const TileRecord& tile, int32_t block, double score, double least,
                    double relative_error, KeptCounts& counts) {
  if (std::abs(score - least) <= relative_error * (score + least)) {
    ++counts.uncertain;
    return;
  }
  ++counts.certain;
  ASSERT_EQ(tile.keeps(block), score >= least)
      << "head " << tile.head << ", position " << tile.first_position << ", block " << block
      << ": score " << score << ", threshold " << least;
}

// The share of each candidate block in plain double, and how far each may be off.
struct Shares {
  std::vector<double> values = {};
  double relative_error = 0;
};

// log(exp(q . key) summed over a block's keys), as the sketches have it.
struct BlockScore {
  double value = 0;
  double error = 0;
};

class PlainSketch {
 public:
  // The query's coordinates in whole steps, as double rounds them.
  PlainSketch(const SparseCase& c, int position, int head) : c_(c) {
    const SketchBasis& basis = *c.basis();
    kv_head_ = head / c.shape().group;
    q_ = c.query(position, head);
    const float* projection = basis.queries_of(kv_head_);
    std::vector<double> coordinates(static_cast<size_t>(basis.rank));
    double largest = 0;
    double error = 0;
    for (size_t i = 0; i < coordinates.size(); ++i) {
      double magnitude = 0;
      for (int dim = 0; dim < basis.head_dim; ++dim) {
        const double product = double{q_[dim]} * projection[dim * basis.rank + static_cast<int>(i)];
        coordinates[i] += product;
        magnitude += std::abs(product);
      }
      largest = std::max(largest, std::abs(coordinates[i]));
      error = std::max(error, magnitude * (basis.head_dim + 8) * 0x1p-24);
    }
    step_ = largest / 127;
    for (const double coordinate : coordinates) {
      const double number = coordinate / step_;
      const double to_middle = std::abs(std::abs(number - std::nearbyint(number)) - 0.5);
      numbers_.push_back(std::nearbyint(number));
      uncertain_.push_back(to_middle <= 2 * 127 * error / largest + 1e-4);
    }
  }

  BlockScore score(int32_t block) const {
    const KvLayout& layout = c_.kv().layout;
    const std::byte* page = c_.kv().page(c_.pages()[static_cast<size_t>(block / layout.blocks())]);
    const BlockSummaries summaries =
        block_summaries(layout, page, kv_head_, block % layout.blocks(), 1);
    double mean = 0;
    for (int dim = 0; dim < layout.head_dim; ++dim) {
      mean += double{q_[dim]} * summaries.k_means[dim];
    }
    double peak = -INFINITY;
    double slack = 0;
    for (int token = 0; token < layout.block_tokens; ++token) {
      double dot = 0;
      double uncertain = 0;
      for (int i = 0; i < layout.sketch_rank; ++i) {
        const double number = summaries.sketches[token * layout.sketch_rank + i] - 128.0;
        dot += numbers_[static_cast<size_t>(i)] * number;
        if (uncertain_[static_cast<size_t>(i)]) uncertain += std::abs(number);
      }
      peak = std::max(peak, dot);
      slack = std::max(slack, uncertain);
    }
    const double unit = step_ * summaries.sketch_scales[0];
    // log(32) / 3 is of the formula in units of log2: log2(32) / 3 * ln 2.
    const double spread = std::log(layout.block_tokens) / 3;
    const double scale = c_.attention().scale;
    return {scale * (mean + peak * unit) + spread, scale * slack * unit};
  }

 private:
  const SparseCase& c_;
  int kv_head_;
  const float* q_;
  double step_;
  std::vector<double> numbers_;
  std::vector<bool> uncertain_;
};

Shares plain_shares(const SparseCase& c, const TileRecord& tile, double product_epsilon) {
  Shares shares{.values = std::vector<double>(tile.num_candidates())};
  for (int row = 0; row < tile.num_positions; ++row) {
    const int position = tile.first_position + row;
    AttentionCase::ExpectedRow forced(c, position, tile.head, product_epsilon);
    const int window_begin = tile.end_candidate * tile.block_tokens;
    for (int token = 0; token < tile.first_candidate * tile.block_tokens; ++token) {
      forced.add_token(token);
    }
    for (int token = window_begin; token <= position; ++token) forced.add_token(token);
    const PlainSketch sketch(c, position, tile.head);
    std::vector<double> masses;
    double total = forced.mass();
    double error = 0;
    for (int32_t block = tile.first_candidate; block < tile.end_candidate; ++block) {
      const BlockScore score = sketch.score(block);
      masses.push_back(std::exp(score.value));
      total += masses.back();
      error = std::max(error, score.error);
    }
    // The error of a weight, twice: in the block's own mass and in the sum of all.
    shares.relative_error =
        std::max(shares.relative_error, 2 * std::expm1(error) + forced.relative_error() + 1e-4);
    for (size_t i = 0; i < masses.size(); ++i) shares.values[i] += std::pow(masses[i] / total, 2);
  }
  for (double& share : shares.values) share = std::sqrt(share / tile.num_positions);
  return shares;
}

TEST_P(SparseOnEachIsa, WinnowKeepsTheBlocksWhoseShareReachesTau) {
  ThreadPool pool(1);
  for (const CaseShape& shape : shapes(GetParam())) {
    SCOPED_TRACE(shape.name());
    const SparseRule rule = winnow_rule(0.12F);
    SparseCase c(shape, rule, 3);
    const SparseRun run = c.run(kernels(), shape.tokens, pool);
    KeptCounts counts;
    for (size_t i = 0; i < run.tiles.size(); i += tile_stride(GetParam())) {
      const TileRecord& tile = run.tiles[i];
      // 64 sink tokens, then the 64 positions that end with the tile's.
      ASSERT_EQ(tile.block_tokens, 32);
      ASSERT_EQ(tile.first_candidate, 2);
      ASSERT_EQ(tile.end_candidate, tile.first_position / 64 * 2);
      const Shares shares = plain_shares(c, tile, product_epsilon(GetParam(), shape.dtype));
      for (int32_t block = tile.first_candidate; block < tile.end_candidate; ++block) {
        const double share = shares.values[static_cast<size_t>(block - tile.first_candidate)];
        ASSERT_NO_FATAL_FAILURE(expect_kept_as(tile, block, 1.6 * share, double{rule.tau},
                                               shares.relative_error, counts));
      }
    }
    // The bound of products of bf16 is wide.
    EXPECT_GT(counts.certain * 4, counts.uncertain);
  }
}

// S of every candidate page in plain double, relative to the tile's largest logit.
std::vector<double> plain_page_scores(const SparseCase& c, const TileRecord& tile) {
  const int group = c.shape().group;
  const int dims = c.shape().head_dim;
  std::vector<std::vector<double>> logits(tile.num_candidates());
  double max = -INFINITY;
  for (int32_t page = 0; page < tile.end_candidate; ++page) {
    std::vector<double> mean(static_cast<size_t>(dims));
    for (int dim = 0; dim < dims; ++dim) {
      for (int token = page * kPageTokens; token < (page + 1) * kPageTokens; ++token) {
        mean[static_cast<size_t>(dim)] += c.stored_k(token, tile.head / group, dim) / kPageTokens;
      }
    }
    for (int row = 0; row < tile.num_positions; ++row) {
      if (tile.first_position + row < (page + 1) * kPageTokens - 1) continue;
      for (int head = tile.head; head < tile.head + group; ++head) {
        const float* q = c.query(tile.first_position + row, head);
        double dot = 0;
        for (int dim = 0; dim < dims; ++dim) dot += double{q[dim]} * mean[static_cast<size_t>(dim)];
        logits[static_cast<size_t>(page)].push_back(dot * c.attention().scale);
        max = std::max(max, logits[static_cast<size_t>(page)].back());
      }
    }
  }
  std::vector<double> scores(logits.size());
  for (size_t page = 0; page < scores.size(); ++page) {
    for (const double logit : logits[page]) scores[page] += std::exp(logit - max);
  }
  return scores;
}

TEST_P(SparseOnEachIsa, V2KeepsTheBlocksThatReachAlphaTimesTheBestAndTheForcedOnes) {
  ThreadPool pool(1);
  for (const CaseShape& shape : shapes(GetParam())) {
    SCOPED_TRACE(shape.name());
    const SparseRule rule = v2_rule(0.5F);
    SparseCase c(shape, rule, 4);
    const SparseRun run = c.run(kernels(), shape.tokens, pool);
    KeptCounts counts;
    for (const TileRecord& tile : run.tiles) {
      ASSERT_EQ(tile.block_tokens, 128);
      ASSERT_EQ(tile.first_candidate, 0);
      ASSERT_EQ(tile.end_candidate, (tile.first_position + tile.num_positions) / 128);
      const std::vector<double> scores = plain_page_scores(c, tile);
      const double best = *std::max_element(scores.begin(), scores.end());
      for (int32_t page = 0; page < tile.end_candidate; ++page) {
        if (page < rule.sink_blocks ||
            page >= tile.first_position / kPageTokens - rule.window_blocks + 1) {
          ASSERT_TRUE(tile.keeps(page)) << "page " << page << ", position " << tile.first_position;
        } else {
          // f32 sums of some hundred terms, over means of 128 keys.
          ASSERT_NO_FATAL_FAILURE(expect_kept_as(tile, page, scores[static_cast<size_t>(page)],
                                                 double{rule.alpha} * best, 1e-4, counts));
        }
      }
    }
    EXPECT_GT(counts.certain, counts.uncertain);
  }
}

TEST_P(SparseOnEachIsa, ABlockThatIsNotKeptIsSeenWholeByEveryRowOfItsTile) {
  ThreadPool pool(1);
  for (const int group : {1, 2, 3, 4, 5, 7, 8, 16}) {
    if (is_slow(GetParam()) && group % 4 != 3) continue;
    for (const int32_t window_blocks : {1, 3}) {
      SparseRule v2 = v2_rule(1);
      v2.sink_blocks = 0;
      v2.window_blocks = window_blocks;
      SparseRule winnow = winnow_rule(1);
      winnow.sink_tokens = 0;
      winnow.window_tokens = 64 * window_blocks;
      for (SparseRule rule : {v2, winnow}) {
        rule.dense_tokens = 128;
        const CaseShape shape{.tokens = 640, .group = group, .head_dim = 16};
        SCOPED_TRACE(testing::Message() << shape.name() << ", window " << window_blocks);
        SparseCase c(shape, rule, static_cast<uint32_t>(group));
        const SparseRun run = c.run(kernels(), shape.tokens, pool);
        size_t left_out = 0;
        for (const TileRecord& tile : run.tiles) {
          for (int32_t block = tile.first_candidate; block < tile.end_candidate; ++block) {
            if (tile.keeps(block)) continue;
            ++left_out;
            ASSERT_LE((block + 1) * tile.block_tokens, tile.first_position + 1)
                << "block " << block;
          }
        }
        EXPECT_GT(left_out, 0U);
      }
    }
  }
}

TEST_P(SparseOnEachIsa, NeitherChunksNorThreadsChangeABitOfTheResult) {
  ThreadPool one(1);
  for (const int group : {1, 3, 7, 16}) {
    if (is_slow(GetParam()) && group != 7) continue;
    for (const SparseRule& rule : {winnow_rule(0.06F), v2_rule(0.5F)}) {
      const CaseShape shape{
          .tokens = is_slow(GetParam()) ? 512 : 1408, .group = group, .head_dim = 16};
      SCOPED_TRACE(shape.name());
      SparseCase c(shape, rule, 5);
      const SparseRun whole = c.run(kernels(), shape.tokens, one);
      EXPECT_LT(whole.stats.density(), 1);
      for (const int chunk : {128, 256, 1024}) {
        const SparseRun got = c.run(kernels(), chunk, one);
        ASSERT_NO_FATAL_FAILURE(expect_same_bits(got.out, whole.out));
        ASSERT_EQ(got.tiles, whole.tiles) << "chunk " << chunk;
        ASSERT_EQ(got.stats.kept_pairs, whole.stats.kept_pairs);
      }
      for (const int threads : {2, 3}) {
        ThreadPool pool(threads);
        const SparseRun got = c.run(kernels(), 256, pool);
        ASSERT_NO_FATAL_FAILURE(expect_same_bits(got.out, whole.out));
        ASSERT_EQ(got.tiles, whole.tiles) << threads << " threads";
      }
    }
  }
}

TEST_P(SparseOnEachIsa, DenseRowsAreThoseOfDenseAttention) {
  ThreadPool pool(1);
  SparseRule rule = winnow_rule(0.1F);
  rule.tail_tokens = 200;
  SparseCase c({.tokens = 700, .group = 2, .head_dim = 16}, rule, 6);
  ASSERT_EQ(c.sparse_end(), 384);
  const std::vector<float> dense = c.prompt(kernels(), 700, pool);
  const SparseRun run = c.run(kernels(), 128, pool);
  const auto floats = [&](int begin, int end) {
    return std::pair(static_cast<size_t>(begin * c.row_floats()),
                     static_cast<size_t>((end - begin) * c.row_floats()));
  };
  for (const auto& [first, count] : {floats(0, 256), floats(384, 700)}) {
    expect_same_bits(std::span(run.out).subspan(first, count),
                     std::span(dense).subspan(first, count));
  }
}

// Every tile that scores the block of a key that is not finite, or has a query that is not, keeps
// all that it might have left out; the others are as they were.
TEST_P(SparseOnEachIsa, KeysAndQueriesThatAreNotFiniteAreNeverLeftOut) {
  ThreadPool pool(1);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (const SparseRule& rule : {winnow_rule(0.12F), v2_rule(0.5F)}) {
      const CaseShape shape{.tokens = 640, .group = 2, .head_dim = 32};
      const bool is_v2 = rule.kind == SparseRuleKind::kV2;
      if (is_slow(GetParam()) && (bad < 0 || (std::isinf(bad) && !is_v2))) continue;
      SCOPED_TRACE(testing::Message() << bad << (is_v2 ? ", V2" : ", Winnow"));
      SparseCase clean(shape, rule, 7);
      const SparseRun want = clean.run(kernels(), 256, pool);

      for (const int bad_token : {333, 100}) {
        SparseCase bad_key(shape, rule, 7);
        bad_key.k()[static_cast<size_t>(bad_token * 32 + 9)] = bad;
        const SparseRun keys = bad_key.run(kernels(), 256, pool);
        for (size_t i = 0; i < keys.tiles.size(); ++i) {
          const TileRecord& tile = keys.tiles[i];
          const int32_t block = bad_token / tile.block_tokens;
          if (tile.first_candidate <= block && block < tile.end_candidate) {
            ASSERT_TRUE(tile.keeps(block));
            if (!is_v2) {
              ASSERT_EQ(tile.kept.size(), tile.num_candidates());
            }
          } else if (bad_token >= rule.dense_tokens &&
                     tile.first_position + tile.num_positions <= bad_token) {
            ASSERT_EQ(tile, want.tiles[i]);
          }
        }
      }

      SparseCase bad_query(shape, rule, 7);
      const int bad_position = 611;
      bad_query.q()[static_cast<size_t>(bad_position * 64 + 32 + 5)] = bad;  // head 1
      const SparseRun queries = bad_query.run(kernels(), 256, pool);
      for (size_t i = 0; i < queries.tiles.size(); ++i) {
        const TileRecord& tile = queries.tiles[i];
        if (tile.has(bad_position) && is_v2 && std::isinf(bad)) {
          // A row whose logits are all minus infinity says nothing of the tile's blocks.
        } else if (tile.has(bad_position) && (is_v2 || tile.head == 1)) {
          ASSERT_EQ(tile.kept.size(), tile.num_candidates());
        } else {
          ASSERT_EQ(tile, want.tiles[i]);
        }
      }
      for (size_t i = 0; i < queries.out.size(); ++i) {
        const bool is_bad = i / 32 == static_cast<size_t>(bad_position) * 2 + 1;
        ASSERT_TRUE(is_bad || std::isfinite(queries.out[i])) << "float " << i;
      }

      SparseCase bad_value(shape, rule, 7);
      bad_value.v()[333 * 32 + 9] = bad;
      const SparseRun values = bad_value.run(kernels(), 256, pool);
      EXPECT_EQ(values.tiles, want.tiles);
      for (size_t i = 0; i < values.out.size(); ++i) {
        // Dim 9 of every row that sees the token; one that a row leaves out counts in its mean.
        const bool may_be_bad = i / 64 >= 333 && i % 32 == 9;
        ASSERT_TRUE(may_be_bad || std::isfinite(values.out[i])) << "float " << i;
      }
    }
  }
}

// One key stands out of a block of keys that say nothing; heads look for it at different scales.
TEST_P(SparseOnEachIsa, ANeedleInAFlatBlockIsKept) {
  ThreadPool pool(1);
  const CaseShape shape{.tokens = 1280, .group = 4, .head_dim = 64};
  if (works_lane_by_lane(GetParam())) GTEST_SKIP() << "too slow for " << isa_name(GetParam());
  SparseCase c(shape, SparseRule{.dense_tokens = 256, .tail_tokens = 0}, 8);
  // Keys of a model lie near a subspace; these in the first 16 dims of the head.
  for (size_t i = 0; i < c.k().size(); ++i) c.k()[i] *= i % 64 < 16 ? 0.1F : 0.001F;
  const int needle = 651;
  const int asking = 1213;  // one row of sixteen
  for (size_t dim = 0; dim < 16; ++dim) {
    const float direction = dim % 2 == 0 ? 0.25F : -0.25F;
    c.k()[needle * 64 + dim] = 16 * direction;
    for (size_t head = 0; head < 4; ++head) {
      // Logits of the needle: 6 to 48 (over the background's, which are near zero).
      c.q()[(asking * 4 + head) * 64 + dim] = direction * 3 * static_cast<float>(1U << head);
    }
  }
  const SparseRun run = c.run(kernels(), 512, pool);
  int found = 0;
  for (const TileRecord& tile : run.tiles) {
    if (!tile.has(asking)) continue;
    EXPECT_TRUE(tile.keeps(needle / 32)) << "head " << tile.head;
    ++found;
  }
  EXPECT_EQ(found, 4);
}

TEST_P(SparseOnEachIsa, StatsCountThePairsThatWereMultiplied) {
  ThreadPool pool(2);
  for (const SparseRule& rule : {winnow_rule(0.12F), v2_rule(0.5F)}) {
    const CaseShape shape{.tokens = 768, .group = 3, .head_dim = 16};
    SparseCase c(shape, rule, 9);
    const SparseRun run = c.run(kernels(), 256, pool);
    const bool is_v2 = rule.kind == SparseRuleKind::kV2;
    int64_t left_out = 0;
    for (const TileRecord& tile : run.tiles) {
      left_out += static_cast<int64_t>(tile.num_candidates() - tile.kept.size()) *
                  tile.block_tokens * tile.num_positions * (is_v2 ? 3 : 1);
    }
    EXPECT_EQ(run.stats.causal_pairs, int64_t{768} * 769 / 2 * 3);
    EXPECT_EQ(run.stats.kept_pairs, run.stats.causal_pairs - left_out);
    EXPECT_GT(run.stats.selection_pairs, 0);
    EXPECT_GT(run.stats.effective_density(), run.stats.density());
  }
}

}  // namespace
}  // namespace winnow
