// Dice: random numbers of one seed, the same on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>

namespace winnow::sim {

class Dice {
 public:
  explicit Dice(uint64_t seed) : bits_(seed) {}

  // In [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(bits_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int64_t n) { return between(1, n) == 1; }
  int64_t one_of(std::initializer_list<int64_t> values) {
    return values.begin()[between(0, static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace winnow::sim
