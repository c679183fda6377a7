#include "cli/attention_bench.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

const AttentionBenchShape kShape{
    .tokens = 1500, .queries = 300, .heads = 4, .kv_heads = 2, .head_dim = 32};

TEST(AttentionBench, MultipliesTheShareThatIsAskedForBesideWhatIsForced) {
  ThreadPool pool(2);
  const std::atomic<bool> cancel = false;
  for (const double density : {0.25, 0.5, 1.0}) {
    const Result<AttentionBenchResult> result =
        bench_attention(**select_kernels(""), kShape, density, 2, pool, cancel);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_NEAR(result->density, density, 0.01);
    EXPECT_GT(result->dense_ms, 0);
    EXPECT_GT(result->sparse_ms, 0);
    EXPECT_GT(result->select_ms, 0);
    EXPECT_GT(result->dense_operations_per_second, 0);
  }
  const Result<AttentionBenchResult> forced =
      bench_attention(**select_kernels(""), kShape, 0, 1, pool, cancel);
  ASSERT_TRUE(forced.ok());
  EXPECT_NEAR(forced->density, (64 + 32) / 1350.0, 0.02);
}

TEST(AttentionBench, StopsWhereItIsTold) {
  ThreadPool pool(1);
  const std::atomic<bool> cancel = true;
  const Result<AttentionBenchResult> result =
      bench_attention(**select_kernels(""), kShape, 0.5, 1, pool, cancel);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kInterrupted);
}

}  // namespace
}  // namespace winnow
