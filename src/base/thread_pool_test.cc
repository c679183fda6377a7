#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <ctime>
#include <limits>
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
  for (int region = 0; region < 5000; ++region) {
    pool.run(4, [&](int64_t task_idx, int) { sum += task_idx; });
  }
  EXPECT_EQ(sum, 5000 * 6);
}

TEST(ThreadPool, UsableThreadsFollowTheAffinityOfTheProcess) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(usable_threads(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_LE(usable_threads(), CPU_COUNT(&before));
}

TEST(ThreadPool, AQuotaGivesTheThreadsThatItHasWhole) {
  EXPECT_EQ(threads_within(8, 0.3), 1);
  EXPECT_EQ(threads_within(8, 1), 1);
  EXPECT_EQ(threads_within(8, 1.9), 1);
  EXPECT_EQ(threads_within(8, 7.5), 7);
  EXPECT_EQ(threads_within(8, 8.5), 8);
  EXPECT_EQ(threads_within(8, std::numeric_limits<double>::infinity()), 8);
}

// CPU time, not wall time: an idle pool must not spin on.
TEST(ThreadPool, AnIdlePoolBurnsNothing) {
  ThreadPool pool(4);
  pool.run(8, [](int64_t, int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const std::clock_t begin = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC / 20);
}

}  // namespace
}  // namespace winnow
