// TaskQueue: a few threads for work that would hold up the network: parsing, templates,
// tokenisation. Bounded in tasks and in what they hold.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace winnow {

struct TaskLimits {
  int64_t max_tasks = 1024;                // waiting
  int64_t max_bytes = int64_t{512} << 20;  // that they hold, unless one waits alone
};

class TaskQueue {
 public:
  explicit TaskQueue(int num_threads, TaskLimits limits = {});
  // Tasks that have not begun are dropped.
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // A task that holds so many bytes; false if it is one too many.
  bool add(int64_t num_bytes, std::function<void()> task);

 private:
  struct Task {
    int64_t num_bytes = 0;
    std::function<void()> run;
  };

  void work();

  const TaskLimits limits_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  int64_t waiting_bytes_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace winnow
