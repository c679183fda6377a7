// AttentionStats: what the attention of some tokens computed, and how long each part took.
#pragma once

#include <chrono>
#include <cstdint>

namespace winnow {

struct AttentionStats {
  // (query row, key) pairs of full-attention layers: all that dense attention multiplies, and those
  // that were multiplied.
  int64_t causal_pairs = 0;
  int64_t kept_pairs = 0;
  // Multiply-adds of scoring and correction, as a number of pairs of that cost; a product of bytes
  // counts half a product of 16-bit numbers.
  double selection_pairs = 0;
  // Added over threads.
  double select_s = 0;
  double attend_s = 0;

  // Whether some rows chose among blocks.
  bool has_selection() const { return selection_pairs > 0; }
  // Shares of dense attention; 1 where there was none.
  double density() const { return share(static_cast<double>(kept_pairs)); }
  double effective_density() const {
    return share(static_cast<double>(kept_pairs) + selection_pairs);
  }

  void add(const AttentionStats& other) {
    causal_pairs += other.causal_pairs;
    kept_pairs += other.kept_pairs;
    selection_pairs += other.selection_pairs;
    select_s += other.select_s;
    attend_s += other.attend_s;
  }

 private:
  double share(double pairs) const {
    return causal_pairs == 0 ? 1 : pairs / static_cast<double>(causal_pairs);
  }
};

// Keys that positions [begin, end) see, added up.
constexpr int64_t pairs_seen(int64_t begin, int64_t end) {
  return (end * (end + 1) - begin * (begin + 1)) / 2;
}

// Splits a thread's time between the parts of its work.
class PartTimer {
 public:
  // Since the start, or the last call of add_to.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - last_).count(); }
  void add_to(double& part_s) {
    const Clock::time_point now = Clock::now();
    part_s += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace winnow
