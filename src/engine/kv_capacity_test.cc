#include "engine/kv_capacity.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;
constexpr int64_t kGib = int64_t{1} << 30;

// Pages of one MiB for 128 tokens each.
KvNeed need_of(int64_t tokens, int64_t most = int64_t{1} << 40) {
  return {.tokens = tokens, .most = most, .page_bytes = kMib};
}

int64_t tokens_for(const KvNeed& need, int64_t fixed_bytes, const MachineMemory& memory) {
  const Result<int64_t> tokens = choose_kv_tokens(need, fixed_bytes, memory);
  EXPECT_TRUE(tokens.ok()) << tokens.error().message;
  return tokens.ok() ? *tokens : -1;
}

TEST(KvCapacity, ATenthOfTheMemoryIsLeftToOthersAndMoreOfALittle) {
  EXPECT_EQ(spare_memory_bytes(100 * kGib), 10 * kGib);
  EXPECT_EQ(spare_memory_bytes(4 * kGib), 512 * kMib);
  EXPECT_EQ(spare_memory_bytes(1 * kGib), 256 * kMib);
}

TEST(KvCapacity, WithoutANumberTheSpareMemoryStaysFree) {
  const MachineMemory memory{.available_bytes = 6 * kGib, .total_bytes = 8 * kGib};
  const int64_t tokens = tokens_for(need_of(0), kGib, memory);
  const int64_t left = memory.available_bytes - kGib - tokens / 128 * kMib;
  EXPECT_GE(left, 8 * kGib / 10);
  EXPECT_LT(left, 8 * kGib / 10 + kMib);
  EXPECT_EQ(tokens_for(need_of(0, 1000), kGib, memory), 1000) << "no more than is of use";
}

TEST(KvCapacity, ANumberThatIsAskedForMayTakeAllThatIsFree) {
  const MachineMemory memory{.available_bytes = 2 * kGib, .total_bytes = 8 * kGib};
  const int64_t all = kGib / kMib * 128;
  EXPECT_EQ(tokens_for(need_of(all), kGib, memory), all);
  const Result<int64_t> more = choose_kv_tokens(need_of(all + 1), kGib, memory);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, ErrorCode::kOutOfMemory);
  EXPECT_NE(more.error().message.find("about 131072 tokens fit"), std::string::npos)
      << more.error().message;
}

TEST(KvCapacity, WhereLittleIsFreeAFewPagesComeBeforeTheSpareMemory) {
  const MachineMemory tight{.available_bytes = kGib + 100 * kMib, .total_bytes = 8 * kGib};
  EXPECT_EQ(tokens_for(need_of(0), kGib, tight), 4 * 128);
  const MachineMemory none{.available_bytes = kGib, .total_bytes = 8 * kGib};
  EXPECT_FALSE(choose_kv_tokens(need_of(0), kGib, none).ok());
}

TEST(KvCapacity, AContainersLimitCountsAsTheMemory) {
  // Half of a 64 GiB machine is free, and 1.5 GiB of a limit of 2 GiB.
  const MachineMemory limited{.available_bytes = 3 * kGib / 2, .total_bytes = 2 * kGib};
  EXPECT_EQ(tokens_for(need_of(0), 500 * kMib, limited), (1536 - 500 - 512) * 128);
}

}  // namespace
}  // namespace winnow
