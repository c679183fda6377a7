// RandomStream: a sequence's own random numbers. Counter-based: the n-th number depends on the seed
// and n alone.
#pragma once

#include <cstdint>

namespace winnow {

class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : key_(mix(seed + kStep)) {}

  uint64_t next_u64() { return mix(key_ + kStep * ++drawn_); }
  // Uniform in [0, 1), a multiple of 2^-53.
  double next_unit() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

 private:
  static constexpr uint64_t kStep =
      0x9E3779B97F4A7C15u;  // 2^64 / golden ratio, odd: visits every key

  // The finaliser of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output
  // bit.
  static constexpr uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }

  uint64_t key_;
  uint64_t drawn_ = 0;
};

}  // namespace winnow
