// IoThread: one thread that does what waits for the disk, one task after the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace winnow {

class IoThread {
 public:
  using Task = std::function<void()>;

  IoThread() : thread_([this] { run(); }) {}
  // Waits for the task at hand; those behind it are dropped.
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  // From any thread. The task must not throw.
  void post(Task task);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace winnow
