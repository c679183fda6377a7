#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "base/cgroup.h"
#include "base/check.h"

namespace winnow {
namespace {

// About 20 microseconds: longer than the serial gaps inside a step, far shorter than a person
// notices on a meter.
constexpr int kSpins = 4000;

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Polls `done` for a short while; true if it became true.
template <class Done>
bool spin_until(Done done) {
  for (int i = 0; i < kSpins; ++i) {
    if (done()) return true;
    pause_cpu();
  }
  return done();
}

}  // namespace

int usable_threads() {
  int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    threads = std::min(threads, std::max(1, CPU_COUNT(&allowed)));
  }
  return threads_within(threads, cgroup_cpu_limit());
}

int threads_within(int num_threads, double cpu_quota) {
  return cpu_quota < num_threads ? std::max(1, static_cast<int>(cpu_quota)) : num_threads;
}

ThreadPool::ThreadPool(int num_threads) {
  CHECK(num_threads >= 1);
  workers_.reserve(static_cast<size_t>(num_threads) - 1);
  try {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error&) {
    // The system allows no more threads: the pool keeps those it has.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::take_tasks(int thread_idx) {
  for (;;) {
    const int64_t task_idx = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task_idx >= num_tasks_) return;
    (*task_)(task_idx, thread_idx);
  }
}

void ThreadPool::run(int64_t num_tasks, FunctionRef<void(int64_t, int)> task) {
  if (workers_.empty() || num_tasks <= 1) {
    for (int64_t i = 0; i < num_tasks; ++i) task(i, 0);
    return;
  }
  task_ = &task;
  num_tasks_ = num_tasks;
  next_task_.store(0, std::memory_order_relaxed);
  busy_workers_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  {
    const std::lock_guard lock(mutex_);
    region_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  take_tasks(0);
  const auto all_done = [this] { return busy_workers_.load(std::memory_order_acquire) == 0; };
  // A worker that the system has descheduled needs this CPU more than the poll does.
  while (!spin_until(all_done)) sched_yield();
}

void ThreadPool::work(int thread_idx) {
  uint64_t seen = 0;
  const auto called = [&] {
    return region_.load(std::memory_order_acquire) != seen ||
           stopping_.load(std::memory_order_relaxed);
  };
  for (;;) {
    if (!spin_until(called)) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, called);
    }
    if (stopping_) return;
    seen = region_.load(std::memory_order_acquire);
    take_tasks(thread_idx);
    busy_workers_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace winnow
