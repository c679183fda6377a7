// The attention operator alone, on random queries, keys and values.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "base/thread_pool.h"
#include "kernels/table.h"

namespace winnow {

// The last `queries` rows of a sequence of `tokens`. Requires kPageTokens <= tokens - queries,
// heads a multiple of kv_heads, head_dim a multiple of kKvLanes.
struct AttentionBenchShape {
  int32_t tokens = 0;
  int32_t queries = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

// Times are medians.
struct AttentionBenchResult {
  double dense_ms = 0;
  double sparse_ms = 0;  // over a list of random blocks that was made beforehand
  double select_ms = 0;  // scores, choice and correction of kWinnow; summaries are there already
  double density = 0;    // of sparse_ms; the forced blocks may make it larger than asked for
  double dense_operations_per_second = 0;  // two per multiply-add
};

// kOutOfMemory naming what is needed; kInterrupted once `cancel` is set.
Result<AttentionBenchResult> bench_attention(const KernelTable& kernels,
                                             const AttentionBenchShape& shape, double density,
                                             int64_t repetitions, ThreadPool& pool,
                                             const std::atomic<bool>& cancel);

}  // namespace winnow
