#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <ctime>
#include <vector>

namespace winnow {
namespace {

TEST(ThreadPool, RunsEveryTaskOnceForAnyThreadAndTaskCount) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
      pool.run(tasks, [&](int64_t task_idx, int thread_idx) {
        EXPECT_LT(thread_idx, threads);
        ++runs[static_cast<size_t>(task_idx)];
      });
      for (const auto& count : runs) EXPECT_EQ(count, 1);
    }
  }
}

TEST(ThreadPool, ManyShortRegionsInARowAllComplete) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum = 0;
  for (int region = 0; region < 20000; ++region) {
    pool.run(4, [&](int64_t task_idx, int) { sum += task_idx; });
  }
  EXPECT_EQ(sum, 20000 * 6);
}

TEST(ThreadPool, UsableThreadsIsPositive) { EXPECT_GE(usable_threads(), 1); }

}  // namespace
}  // namespace winnow
