// SipHash-2-4 (Aumasson, Bernstein 2012) of 64-bit words: whoever does not know the key cannot
// choose words that share a hash.
#pragma once

#include <bit>
#include <cstdint>

namespace winnow {

class SipHash {
 public:
  SipHash(uint64_t key0, uint64_t key1)
      : v0_(key0 ^ 0x736f6d6570736575),
        v1_(key1 ^ 0x646f72616e646f6d),
        v2_(key0 ^ 0x6c7967656e657261),
        v3_(key1 ^ 0x7465646279746573) {}

  void add(uint64_t word) {
    v3_ ^= word;
    round();
    round();
    v0_ ^= word;
    num_bytes_ += sizeof(word);
  }
  // Nothing may be added afterwards.
  uint64_t finish() {
    add(num_bytes_ << 56);
    v2_ ^= 0xff;
    for (int i = 0; i < 4; ++i) round();
    return v0_ ^ v1_ ^ v2_ ^ v3_;
  }

 private:
  void round() {
    v0_ += v1_;
    v2_ += v3_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ = std::rotl(v0_, 32) + v3_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ = std::rotl(v2_, 32);
  }

  uint64_t v0_;
  uint64_t v1_;
  uint64_t v2_;
  uint64_t v3_;
  uint64_t num_bytes_ = 0;
};

}  // namespace winnow
