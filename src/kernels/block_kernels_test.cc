#include "kernels/block_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <random>
#include <vector>

#include "support/each_isa.h"
#include "support/f32_limits.h"
#include "support/guarded_buffer.h"
#include "support/same_bits.h"

namespace winnow {
namespace {

using test::expect_same_bits;

class BlocksOnEachIsa : public EachIsa {
 protected:
  const BlockKernels& ops() const { return *kernels().blocks; }
};
INSTANTIATE_TEST_SUITE_P(Isa, BlocksOnEachIsa, all_isas(), isa_test_name);

constexpr double kLn2 = std::numbers::ln2;
constexpr double kLog2E = std::numbers::log2e;
// Relative error of a weight exp2(x), x >= -126: the polynomial's, and that of x rounded.
constexpr double kWeightError = 4e-7 + 126 * kLn2 * kEpsilon;

void fill_normal(std::span<float> values, std::mt19937& rng, float deviation = 1) {
  std::normal_distribution<float> normal(0, deviation);
  for (float& value : values) value = normal(rng);
}

// A score tile and the blocks of one page, all in guarded memory.
class ScoreCase {
 public:
  static constexpr int kTokens = 32;

  ScoreCase(int rows, int head_dim, int rank, int num_blocks, bool extreme_sketches, uint32_t seed)
      : rows_(rows),
        head_dim_(head_dim),
        rank_(rank),
        num_blocks_(num_blocks),
        stride_(head_dim + 16),
        q_(static_cast<size_t>((rows - 1) * stride_ + head_dim)),
        projection_(static_cast<size_t>(head_dim * rank)),
        means_(static_cast<size_t>(num_blocks * head_dim)),
        sketches_(static_cast<size_t>(num_blocks * kTokens * rank)),
        scales_(static_cast<size_t>(num_blocks)) {
    std::mt19937 rng(seed);
    fill_normal(q_.span(), rng, 1.5F);
    fill_normal(projection_.span(), rng, 0.3F);
    fill_normal(means_.span(), rng);
    for (float& scale : scales_.span()) scale = 0.01F + 0.05F * static_cast<float>(rng() % 16) / 16;
    for (uint8_t& number : sketches_.span()) {
      number =
          extreme_sketches ? (rng() % 2 == 0 ? 1 : 255) : static_cast<uint8_t>(1 + rng() % 255);
    }
  }

  float* q_row(int row) { return q_.data() + row * stride_; }
  float scale() const { return 1 / std::sqrt(static_cast<float>(head_dim_)); }

  struct Scores {
    std::vector<float> mean_logits;
    std::vector<float> scores;
  };
  // Rows [first_row, first_row + rows) and blocks [first_block, first_block + blocks) alone.
  Scores run(const BlockKernels& ops, int first_row, int rows, int first_block, int blocks) {
    GuardedBuffer<std::byte> scratch(static_cast<size_t>(ops.scratch_bytes(head_dim_, rank_)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(scratch.data()) % 64, 0U);
    const ScoreTile tile{.q = q_row(first_row),
                         .row_stride = stride_,
                         .rows = rows,
                         .head_dim = head_dim_,
                         .scale = scale(),
                         .rank = rank_,
                         .projection = rank_ == 0 ? nullptr : projection_.data(),
                         .scratch = scratch.data()};
    const BlockSummaries summaries{.k_means = means_.data() + first_block * head_dim_,
                                   .sketches = sketches_.data() + first_block * kTokens * rank_,
                                   .sketch_scales = scales_.data() + first_block,
                                   .num_blocks = blocks,
                                   .block_tokens = kTokens};
    GuardedBuffer<float> logits(static_cast<size_t>(blocks * kScoreRows)), scores(logits.size());
    ops.begin(tile);
    ops.score(tile, summaries, logits.data(), rank_ == 0 ? nullptr : scores.data());
    return {{logits.data(), logits.data() + logits.size()},
            {scores.data(), scores.data() + scores.size()}};
  }
  Scores run(const BlockKernels& ops) { return run(ops, 0, rows_, 0, num_blocks_); }

  struct Expected {
    double value;
    double bound;
  };
  Expected mean_logit(int row, int block) {
    const float* mean = means_.data() + block * head_dim_;
    double dot = 0;
    double magnitude = 0;
    for (int dim = 0; dim < head_dim_; ++dim) {
      dot += double{q_row(row)[dim]} * mean[dim];
      magnitude += std::abs(double{q_row(row)[dim]} * mean[dim]);
    }
    const double factor = double{scale()} * kLog2E;
    return {dot * factor, magnitude * factor * (head_dim_ + 4) * kEpsilon};
  }

  // The score from the row's numbers as double rounds them. Where a coordinate lies so close to the
  // middle of two whole numbers that f32 may round it to the other one, the bound grows by a step
  // of it.
  Expected score(int row, int block) {
    const Sketch sketch = sketch_of(row);
    double peak = -INFINITY;
    double slack = 0;
    for (int token = block * kTokens; token < (block + 1) * kTokens; ++token) {
      double dot = 0;
      double uncertain = 0;
      for (int i = 0; i < rank_; ++i) {
        const double number = sketches_[static_cast<size_t>(token * rank_ + i)] - 128.0;
        dot += sketch.numbers[static_cast<size_t>(i)] * number;
        if (sketch.uncertain[static_cast<size_t>(i)]) uncertain += std::abs(number);
      }
      peak = std::max(peak, dot);
      slack = std::max(slack, uncertain);
    }
    const double unit = sketch.step * scale() * kLog2E * scales_[static_cast<size_t>(block)];
    const Expected mean = mean_logit(row, block);
    const double spread = std::log2(double{kTokens}) / 3;
    const double value = mean.value + peak * unit + spread;
    const double rounding = (std::abs(mean.value) + std::abs(peak * unit) + spread) * 4 * kEpsilon;
    return {value,
            mean.bound + rounding + std::abs(peak) * unit * sketch.step_error + slack * unit};
  }

 private:
  struct Sketch {
    std::vector<double> numbers = {};
    std::vector<bool> uncertain = {};
    double step = 0;
    double step_error = 0;  // relative
  };
  Sketch sketch_of(int row) {
    std::vector<double> coordinates(static_cast<size_t>(rank_)), errors(coordinates.size());
    double largest = 0;
    double largest_error = 0;
    for (size_t i = 0; i < coordinates.size(); ++i) {
      double magnitude = 0;
      for (int dim = 0; dim < head_dim_; ++dim) {
        const double product =
            double{q_row(row)[dim]} * projection_[static_cast<size_t>(dim * rank_) + i];
        coordinates[i] += product;
        magnitude += std::abs(product);
      }
      errors[i] = magnitude * (head_dim_ + 4) * kEpsilon;
      largest = std::max(largest, std::abs(coordinates[i]));
      largest_error = std::max(largest_error, errors[i]);
    }
    Sketch sketch{.step = largest / 127, .step_error = largest_error / largest + 8 * kEpsilon};
    for (size_t i = 0; i < coordinates.size(); ++i) {
      const double number = coordinates[i] / sketch.step;
      const double error = errors[i] / sketch.step + 127 * sketch.step_error;
      const double to_middle = std::abs(std::abs(number - std::nearbyint(number)) - 0.5);
      sketch.numbers.push_back(std::nearbyint(number));
      sketch.uncertain.push_back(to_middle <= error);
    }
    return sketch;
  }

  int rows_, head_dim_, rank_, num_blocks_;
  int64_t stride_;
  GuardedBuffer<float> q_, projection_, means_;
  GuardedBuffer<uint8_t> sketches_;
  GuardedBuffer<float> scales_;
};

TEST_P(BlocksOnEachIsa, ScoresAreTheMeanLogitAndTheBestSketchProduct) {
  uint32_t seed = 0;
  for (const int head_dim : {16, 64, 80, 128, 256}) {
    for (const int rank : {0, 4, 16, 20, 64}) {
      for (const int rows : {1, 3, 8, 9, 16}) {
        const int num_blocks = static_cast<int>(++seed % 4) + 1;
        const bool extreme = seed % 3 == 0;
        SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << ", rank " << rank << ", rows "
                                        << rows << ", seed " << seed);
        ScoreCase c(rows, head_dim, rank, num_blocks, extreme, seed);
        const ScoreCase::Scores got = c.run(ops());
        for (int block = 0; block < num_blocks; ++block) {
          for (int row = 0; row < rows; ++row) {
            const size_t idx = static_cast<size_t>(block * kScoreRows + row);
            const ScoreCase::Expected mean = c.mean_logit(row, block);
            ASSERT_NEAR(got.mean_logits[idx], mean.value, mean.bound);
            if (rank == 0) continue;
            const ScoreCase::Expected score = c.score(row, block);
            ASSERT_NEAR(got.scores[idx], score.value, score.bound)
                << "row " << row << ", block " << block;
          }
        }
      }
    }
  }
}

TEST_P(BlocksOnEachIsa, AScoresBitsDependOnNoOtherRowOrBlock) {
  ScoreCase c(16, 80, 20, 4, false, 7);
  const ScoreCase::Scores all = c.run(ops());
  for (int row = 0; row < 16; row += 5) {
    for (int block = 0; block < 4; ++block) {
      const ScoreCase::Scores alone = c.run(ops(), row, 1, block, 1);
      const size_t idx = static_cast<size_t>(block * kScoreRows + row);
      expect_same_bits({&alone.mean_logits[0], 1}, {&all.mean_logits[idx], 1});
      expect_same_bits({&alone.scores[0], 1}, {&all.scores[idx], 1});
    }
  }
}

TEST_P(BlocksOnEachIsa, AQueryThatIsNotFiniteHasNaNScoresInItsRowAlone) {
  for (const float bad : {NAN, kInfinity, -kInfinity}) {
    for (const int bad_dim : {0, 37, 63}) {
      SCOPED_TRACE(testing::Message() << bad << " at dim " << bad_dim);
      ScoreCase c(13, 64, 16, 3, false, 8);
      const ScoreCase::Scores clean = c.run(ops());
      c.q_row(5)[bad_dim] = bad;
      const ScoreCase::Scores got = c.run(ops());
      for (int block = 0; block < 3; ++block) {
        for (int row = 0; row < 13; ++row) {
          const size_t idx = static_cast<size_t>(block * kScoreRows + row);
          if (row == 5) {
            ASSERT_TRUE(std::isnan(got.scores[idx]));
          } else {
            expect_same_bits({&got.scores[idx], 1}, {&clean.scores[idx], 1});
          }
        }
      }
    }
  }
}

TEST_P(BlocksOnEachIsa, AQueryOfZerosScoresItsSpreadAlone) {
  ScoreCase c(4, 64, 16, 2, true, 9);
  for (int row = 0; row < 4; ++row) std::fill_n(c.q_row(row), 64, 0.0F);
  const ScoreCase::Scores got = c.run(ops());
  for (int row = 0; row < 4; ++row) {
    EXPECT_EQ(got.mean_logits[static_cast<size_t>(row)], 0);
    EXPECT_NEAR(got.scores[static_cast<size_t>(row)], 5.0 / 3, 4 * kEpsilon);
  }
}

// Shares of random scores: [num_blocks][kScoreRows], in guarded memory. Lanes without a row hold
// NaN.
struct SharesCase {
  SharesCase(int rows_in, int num_blocks_in, float deviation, uint32_t seed)
      : rows(rows_in),
        num_blocks(num_blocks_in),
        scores(static_cast<size_t>(num_blocks * kScoreRows)),
        forced_max(static_cast<size_t>(rows)),
        forced_sum(forced_max.size()),
        shares(static_cast<size_t>(num_blocks)) {
    std::mt19937 rng(seed);
    fill_normal(scores.span(), rng, deviation);
    fill_normal(forced_max.span(), rng, deviation);
    for (float& sum : forced_sum.span()) sum = 1 + static_cast<float>(rng() % 1000) * 0.1F;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (static_cast<int>(i % kScoreRows) >= rows) scores[i] = NAN;
    }
  }

  float& score(int block, int row) { return scores[static_cast<size_t>(block * kScoreRows + row)]; }
  std::vector<double> expected() {
    std::vector<double> squares(static_cast<size_t>(num_blocks));
    for (int row = 0; row < rows; ++row) {
      double max = forced_max[static_cast<size_t>(row)];
      for (int block = 0; block < num_blocks; ++block) {
        max = std::max(max, double{score(block, row)});
      }
      double sum = forced_sum[static_cast<size_t>(row)] *
                   std::exp2(forced_max[static_cast<size_t>(row)] - max);
      for (int block = 0; block < num_blocks; ++block) sum += std::exp2(score(block, row) - max);
      for (int block = 0; block < num_blocks; ++block) {
        squares[static_cast<size_t>(block)] +=
            std::pow(std::exp2(score(block, row) - max) / sum, 2);
      }
    }
    for (double& value : squares) value = std::sqrt(value / rows);
    return squares;
  }
  void run(const BlockKernels& ops) {
    ops.shares(scores.data(), num_blocks, rows, {forced_max.data(), forced_sum.data()},
               shares.data());
  }

  int rows, num_blocks;
  GuardedBuffer<float> scores, forced_max, forced_sum, shares;
};

TEST_P(BlocksOnEachIsa, SharesAreTheRootMeanSquareOfTheRowsSoftmax) {
  uint32_t seed = 0;
  for (const int num_blocks : {0, 1, 2, 5, 1000}) {
    for (const int rows : {1, 4, 7, 8, 15, 16}) {
      for (const float deviation : {0.1F, 4.0F, 60.0F}) {
        SCOPED_TRACE(testing::Message()
                     << num_blocks << " blocks, " << rows << " rows, seed " << ++seed);
        SharesCase c(rows, num_blocks, deviation, seed);
        for (int block = 3; block < num_blocks; block += 7)
          c.score(block, block % rows) = -kInfinity;
        const std::vector<double> want = c.expected();
        c.run(ops());
        for (int block = 0; block < num_blocks; ++block) {
          const double share = want[static_cast<size_t>(block)];
          // A share's error is that of a weight and of the sum of them all. Squares of p below
          // 2^-63 are no normal numbers.
          ASSERT_NEAR(c.shares[static_cast<size_t>(block)], share,
                      share * (2 * kWeightError + (num_blocks + 16) * kEpsilon) + 0x1p-62);
        }
      }
    }
  }
}

TEST_P(BlocksOnEachIsa, ANaNScoreMakesEveryShareNaN) {
  for (const int bad_row : {0, 6, 9}) {
    SharesCase c(10, 20, 3, 3);
    c.score(11, bad_row) = NAN;
    c.run(ops());
    for (const float share : c.shares.span()) ASSERT_TRUE(std::isnan(share));
  }
}

TEST_P(BlocksOnEachIsa, BlocksOfNoWeightHaveNoShare) {
  SharesCase c(5, 20, 3, 4);
  for (int block = 0; block < 20; ++block) {
    for (int row = 0; row < 5; ++row) c.score(block, row) = -kInfinity;
  }
  c.run(ops());
  for (const float share : c.shares.span()) ASSERT_EQ(share, 0);
}

TEST_P(BlocksOnEachIsa, SharesWithoutForcedKeysAddUpToOneInEveryRow) {
  SharesCase c(1, 50, 5, 5);
  c.forced_max[0] = -kInfinity;
  c.forced_sum[0] = 0;
  c.run(ops());
  double sum = 0;
  for (const float share : c.shares.span()) sum += share;
  EXPECT_NEAR(sum, 1, 2 * kWeightError + 100 * kEpsilon);
}

// A correction of a tile's rows that stand `stride` rows apart, all in guarded memory.
struct CorrectCase {
  CorrectCase(int rows_in, int stride_in, int num_blocks, int head_dim_in, float deviation,
              uint32_t seed)
      : rows(rows_in),
        stride(stride_in),
        head_dim(head_dim_in),
        max(static_cast<size_t>((rows - 1) * stride + 1)),
        sum(max.size()),
        acc(max.size() * static_cast<size_t>(head_dim)),
        // Twice as many blocks have logits.
        logits(static_cast<size_t>(2 * num_blocks * kScoreRows)),
        blocks(static_cast<size_t>(num_blocks)),
        v(static_cast<size_t>(num_blocks * head_dim)),
        v_means(static_cast<size_t>(num_blocks)),
        weights(static_cast<size_t>(num_blocks * kScoreRows)) {
    std::mt19937 rng(seed);
    fill_normal(max.span(), rng, deviation);
    fill_normal(acc.span(), rng);
    fill_normal(logits.span(), rng, deviation);
    fill_normal(v.span(), rng);
    for (float& value : sum.span()) value = 1 + static_cast<float>(rng() % 100);
    for (int i = 0; i < num_blocks; ++i) {
      blocks[static_cast<size_t>(i)] = 2 * i + static_cast<int>(rng() % 2);
      v_means[static_cast<size_t>(i)] = v.data() + i * head_dim;
    }
  }

  int num_blocks() const { return static_cast<int>(blocks.size()); }
  float logit(int i, int row) const {
    return logits[static_cast<size_t>(blocks[static_cast<size_t>(i)] * kScoreRows + row)] + 5.0F;
  }
  void run(const BlockKernels& ops) {
    ops.correct({.mean_logits = logits.data(),
                 .blocks = blocks.data(),
                 .v_means = v_means.data(),
                 .num_blocks = num_blocks(),
                 .log2_tokens = 5,
                 .weights = weights.data()},
                {max.data(), sum.data(), acc.data(), stride, rows, head_dim});
  }

  int rows, stride, head_dim;
  GuardedBuffer<float> max, sum, acc, logits;
  GuardedBuffer<int32_t> blocks;
  GuardedBuffer<float> v;
  GuardedBuffer<const float*> v_means;
  GuardedBuffer<float> weights;
};

void check_correction(const BlockKernels& ops, CorrectCase& c) {
  const std::vector<float> max(c.max.span().begin(), c.max.span().end());
  const std::vector<float> sum(c.sum.span().begin(), c.sum.span().end());
  const std::vector<float> acc(c.acc.span().begin(), c.acc.span().end());
  c.run(ops);
  for (size_t i = 0; i < max.size(); ++i) {
    const size_t stride = static_cast<size_t>(c.stride);
    const auto dims = static_cast<size_t>(c.head_dim);
    if (i % stride != 0) {  // not one of the rows
      expect_same_bits({&c.max[i], 1}, {&max[i], 1});
      expect_same_bits({&c.sum[i], 1}, {&sum[i], 1});
      expect_same_bits({&c.acc[i * dims], dims}, {&acc[i * dims], dims});
      continue;
    }
    const int row = static_cast<int>(i / stride);
    double new_max = max[i];
    for (int j = 0; j < c.num_blocks(); ++j) new_max = std::max(new_max, double{c.logit(j, row)});
    ASSERT_EQ(c.max[i], static_cast<float>(new_max));
    const double relative = 2 * kWeightError + (c.num_blocks() + 16) * kEpsilon;
    // Weights below 2^-126 are zero.
    const double absolute = (c.num_blocks() + 100) * 0x1p-120;
    const double shrink = std::exp2(max[i] - new_max);
    double new_sum = sum[i] * shrink;
    for (int j = 0; j < c.num_blocks(); ++j) new_sum += std::exp2(c.logit(j, row) - new_max);
    ASSERT_NEAR(c.sum[i], new_sum, new_sum * relative + absolute);
    for (size_t dim = 0; dim < dims; ++dim) {
      double value = acc[i * dims + dim] * shrink;
      double magnitude = std::abs(value);
      for (int j = 0; j < c.num_blocks(); ++j) {
        const double weight = std::exp2(c.logit(j, row) - new_max);
        const double mean = c.v_means[static_cast<size_t>(j)][dim];
        value += weight * mean;
        magnitude += weight * std::abs(mean);
      }
      ASSERT_NEAR(c.acc[i * dims + dim], value, magnitude * relative + absolute)
          << "row " << row << ", dim " << dim;
    }
  }
}

TEST_P(BlocksOnEachIsa, CorrectionsAddOneKeyPerBlockToTheRowsSoftmax) {
  uint32_t seed = 0;
  for (const int num_blocks : {0, 1, 5, 1000}) {
    for (const int stride : {1, 3, 7}) {
      for (const int rows : {1, 7, 8, 9, 16}) {
        const int head_dim = num_blocks == 1000 ? 16 : seed % 2 == 0 ? 64 : 80;
        SCOPED_TRACE(testing::Message() << num_blocks << " blocks, stride " << stride << ", rows "
                                        << rows << ", seed " << ++seed);
        CorrectCase c(rows, stride, num_blocks, head_dim, seed % 3 == 0 ? 50.0F : 3.0F, seed);
        ASSERT_NO_FATAL_FAILURE(check_correction(ops(), c));
      }
    }
  }
}

TEST_P(BlocksOnEachIsa, CorrectionsStandLogitsOfAnySize) {
  for (const float deviation : {1e-30F, 1e4F, 1e30F, 5e37F}) {
    SCOPED_TRACE(deviation);
    CorrectCase c(16, 3, 40, 32, deviation, 11);
    ASSERT_NO_FATAL_FAILURE(check_correction(ops(), c));
  }
}

TEST_P(BlocksOnEachIsa, CorrectionsStandRowsWithoutWeight) {
  // Row 0 has seen nothing, row 1 gets nothing, row 2 neither.
  CorrectCase c(3, 1, 6, 16, 3, 12);
  c.max[0] = c.max[2] = -kInfinity;
  c.sum[0] = c.sum[2] = 0;
  std::fill_n(c.acc.data(), 16, 0.0F);
  std::fill_n(c.acc.data() + 32, 16, 0.0F);
  for (size_t i = 0; i < c.logits.size(); ++i) {
    if (i % kScoreRows == 1 || i % kScoreRows == 2) c.logits[i] = -kInfinity;
  }
  const float old_max = c.max[1], old_sum = c.sum[1], old_acc = c.acc[16];
  c.run(ops());
  float best = -kInfinity;
  for (int i = 0; i < c.num_blocks(); ++i) best = std::max(best, c.logit(i, 0));
  EXPECT_EQ(c.max[0], best);
  EXPECT_GE(c.sum[0], 1);
  EXPECT_EQ(c.max[1], old_max);
  EXPECT_EQ(c.sum[1], old_sum);
  EXPECT_EQ(c.acc[16], old_acc);
  EXPECT_EQ(c.max[2], -kInfinity);
  EXPECT_EQ(c.sum[2], 0);
  for (size_t i = 32; i < 48; ++i) EXPECT_EQ(c.acc[i], 0);
}

TEST_P(BlocksOnEachIsa, ACorrectedRowsBitsDependOnNoOtherRow) {
  CorrectCase all(16, 1, 30, 48, 4, 13);
  CorrectCase few(16, 1, 30, 48, 4, 13);
  few.rows = 11;
  all.run(ops());
  few.run(ops());
  expect_same_bits({few.sum.data(), 11}, {all.sum.data(), 11});
  expect_same_bits({few.acc.data(), 11 * 48}, {all.acc.data(), 11 * 48});
}

}  // namespace
}  // namespace winnow
