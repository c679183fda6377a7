// ProgressLine: what the user sees while a long prompt is read: a live line on a terminal, a plain
// line every ten seconds elsewhere.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/console.h"
#include "engine/engine.h"

namespace winnow {

// The state of a prefill as a line of at most `width` columns, without line end.
struct PrefillState {
  PrefillProgress progress;
  double tokens_per_second = 0;      // of all chunks so far; 0 = not known
  double tokens_per_second_now = 0;  // of the last chunk
  int64_t memory_bytes = 0;
};
std::string prefill_line(const PrefillState& state, size_t width);
// 83000 -> "83 000"; 75 s -> "1:15"; bytes -> "1.9 GiB".
std::string grouped(int64_t number);
std::string clock_time(double seconds);
std::string binary_size(int64_t bytes);

// Draws from a thread of its own, four times a second, because a chunk may take long. Says nothing
// about prompts that are read before the first drawing.
class ProgressLine {
 public:
  ProgressLine(Console& console, int64_t total_tokens);
  ~ProgressLine() { finish(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void update(const PrefillProgress& progress);
  // Takes the live line off the terminal. Until then nobody else may write to `console.err`.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw_until_finished();
  void draw(Clock::time_point now);

  Console& console_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;
  bool drawn_ = false;
  PrefillState state_;
  Clock::time_point updated_ = start_;
  std::thread thread_;
};

}  // namespace winnow
