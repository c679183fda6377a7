#include "cli/progress_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/memory_info.h"
#include "cli/formatted.h"

namespace winnow {
namespace {

constexpr std::chrono::milliseconds kTerminalPeriod{250};
constexpr std::chrono::seconds kPipePeriod{10};

}  // namespace

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<size_t>(at), " ");
  }
  return digits;
}

std::string clock_time(double seconds) {
  constexpr double kLongest = 360000;  // 100 hours
  const int64_t whole = std::lround(std::clamp(seconds, 0.0, kLongest));
  const auto hours = static_cast<int>(whole / 3600);
  const auto minutes = static_cast<int>(whole / 60 % 60);
  const auto rest = static_cast<int>(whole % 60);
  if (hours > 0) return formatted("%d:%02d:%02d", hours, minutes, rest);
  return formatted("%d:%02d", minutes, rest);
}

std::string binary_size(int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return formatted("%.1f GiB", value / 0x1p30);
  return formatted("%.0f MiB", value / 0x1p20);
}

std::string prefill_line(const PrefillState& state, size_t width) {
  const PrefillProgress& progress = state.progress;
  const int64_t total = std::max<int64_t>(progress.total, 1);
  std::string line = formatted("prefill %d%% of ", static_cast<int>(progress.done * 100 / total)) +
                     grouped(progress.total);
  // In the order in which they may be missed on a narrow terminal, the last first. 80 columns have
  // room for those up to Ctrl+C.
  std::vector<std::string> parts;
  if (state.tokens_per_second > 0) {
    parts.push_back(formatted("%.0f tok/s", state.tokens_per_second));
    parts.push_back("ETA " + clock_time(progress.eta_s));
  } else {
    parts.push_back("elapsed " + clock_time(progress.elapsed_s));
  }
  parts.push_back("memory " + binary_size(state.memory_bytes));
  parts.push_back("Ctrl+C cancels");
  if (progress.attention.has_selection()) {
    parts.push_back(formatted("density %.2f", progress.attention.density()));
  }
  if (state.tokens_per_second > 0) {
    parts.push_back("elapsed " + clock_time(progress.elapsed_s));
    parts.push_back(formatted("now %.0f tok/s", state.tokens_per_second_now));
  }
  if (progress.reused > 0) parts.push_back("cached " + grouped(progress.reused));
  for (const std::string& part : parts) {
    if (line.size() + 2 + part.size() > width) break;
    line += "  " + part;
  }
  return line.substr(0, width);
}

ProgressLine::ProgressLine(Console& console, int64_t total_tokens) : console_(console) {
  state_.progress.total = total_tokens;
  if (!console_.quiet) thread_ = std::thread([this] { draw_until_finished(); });
}

void ProgressLine::update(const PrefillProgress& progress) {
  const std::lock_guard lock(mutex_);
  const auto speed = [](int64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  };
  const int64_t before = std::max(state_.progress.done, progress.reused);
  state_.tokens_per_second_now =
      speed(progress.done - before, progress.elapsed_s - state_.progress.elapsed_s);
  state_.tokens_per_second = speed(progress.done - progress.reused, progress.elapsed_s);
  state_.progress = progress;
  updated_ = Clock::now();
}

void ProgressLine::finish() {
  {
    const std::lock_guard lock(mutex_);
    finished_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  if (drawn_ && console_.err.is_terminal()) console_.err.write("\r\x1b[K");
  drawn_ = false;
}

void ProgressLine::draw_until_finished() {
  const auto period = console_.err.is_terminal()
                          ? std::chrono::duration_cast<Clock::duration>(kTerminalPeriod)
                          : std::chrono::duration_cast<Clock::duration>(kPipePeriod);
  std::unique_lock lock(mutex_);
  for (Clock::time_point next = start_ + period;; next += period) {
    if (wake_.wait_until(lock, next, [this] { return finished_; })) return;
    if (state_.progress.done < state_.progress.total) draw(Clock::now());
  }
}

void ProgressLine::draw(Clock::time_point now) {
  PrefillState shown = state_;
  const double since_update = std::chrono::duration<double>(now - updated_).count();
  shown.progress.elapsed_s = std::chrono::duration<double>(now - start_).count();
  shown.progress.eta_s = std::max(0.0, state_.progress.eta_s - since_update);
  shown.memory_bytes = peak_resident_bytes();
  if (console_.err.is_terminal()) {
    const auto width = static_cast<size_t>(std::max(20, console_.err.width() - 1));
    const std::string line = prefill_line(shown, width);
    console_.err.write("\r" + Console::styled(console_.err, "2", line) + "\x1b[K");
  } else {
    console_.err.write(prefill_line(shown, 200) + "\n");
  }
  drawn_ = true;
}

}  // namespace winnow
