// ThreadPool: a fixed set of threads that run the tasks of one parallel region at a time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/function_ref.h"

namespace winnow {

// The caller is thread 0 and works too, so a pool of one starts no thread. Idle workers spin for a
// few microseconds, then sleep: consecutive regions of a step meet awake workers, and an idle
// process burns nothing. Tasks are handed out in order; which thread runs which task is not fixed,
// so a task's result must depend on its index alone (law 1). Not reentrant: a task must not call
// run().
class ThreadPool {
 public:
  // Starts num_threads - 1 threads, or as many as the system allows: num_threads() tells. Requires
  // num_threads >= 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(task_idx, thread_idx) once for every task_idx in [0, num_tasks) and returns when all
  // are done. thread_idx is in [0, num_threads()), for per-thread scratch.
  void run(int64_t num_tasks, FunctionRef<void(int64_t, int)> task);

 private:
  void work(int thread_idx);
  void take_tasks(int thread_idx);

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<uint64_t> region_{0};  // counts regions; a change is the signal to start
  std::atomic<int64_t> next_task_{0};
  std::atomic<int> busy_workers_{0};
  std::atomic<bool> stopping_{false};
  const FunctionRef<void(int64_t, int)>* task_ = nullptr;
  int64_t num_tasks_ = 0;
};

// Threads this process may really use: the smallest of hardware threads, CPU affinity and cgroup
// quota; at least 1.
int usable_threads();
// Of `num_threads` those that a quota of CPUs has whole: one more would be throttled while the
// others wait for it. At least 1.
int threads_within(int num_threads, double cpu_quota);

}  // namespace winnow
