#include "kv/sip_hash.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

// The reference's vector for the key 00 01 .. 0f and the message 00 01 .. 07.
TEST(SipHash, AgreesWithThePublishedVector) {
  SipHash hash(0x0706050403020100, 0x0f0e0d0c0b0a0908);
  hash.add(0x0706050403020100);
  EXPECT_EQ(hash.finish(), 0x93f5f5799a932462U);
}

TEST(SipHash, OneBitOfTheKeyOrOfAWordChangesHalfOfTheBits) {
  const auto of = [](uint64_t key, uint64_t word) {
    SipHash hash(key, 1);
    hash.add(word);
    return hash.finish();
  };
  int changed = 0;
  for (int bit = 0; bit < 64; ++bit) {
    changed += std::popcount(of(5, 7) ^ of(5 ^ (uint64_t{1} << bit), 7));
    changed += std::popcount(of(5, 7) ^ of(5, 7 ^ (uint64_t{1} << bit)));
  }
  EXPECT_NEAR(changed / 128.0, 32, 2);
}

}  // namespace
}  // namespace winnow
