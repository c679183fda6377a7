#include "server/task_queue.h"

#include <utility>

namespace winnow {

TaskQueue::TaskQueue(int num_threads, TaskLimits limits) : limits_(limits) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { work(); });
}

TaskQueue::~TaskQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool TaskQueue::add(int64_t num_bytes, std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  const bool full = std::ssize(tasks_) >= limits_.max_tasks ||
                    (!tasks_.empty() && waiting_bytes_ + num_bytes > limits_.max_bytes);
  if (full) return false;
  tasks_.push_back({num_bytes, std::move(task)});
  waiting_bytes_ += num_bytes;
  wake_.notify_one();
  return true;
}

void TaskQueue::work() {
  for (;;) {
    Task task;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !tasks_.empty(); });
      if (stopping_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
      waiting_bytes_ -= task.num_bytes;
    }
    task.run();
  }
}

}  // namespace winnow
