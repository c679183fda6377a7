#include "kv/kv_store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <cstring>

namespace winnow {
namespace {

const KvLayout kSmall{.kv_heads = 2, .head_dim = 64};
const KvLayout kWide{.kv_heads = 1, .head_dim = 256, .dtype = KvDType::kF16};

std::unique_ptr<KvStore> make_store(std::span<const KvLayout> layers, int64_t num_pages) {
  auto store = KvStore::create(layers, num_pages);
  EXPECT_TRUE(store.ok()) << (store.ok() ? "" : store.error().message);
  return std::move(store).value();
}

TEST(KvStore, EveryByteOfEveryPageOfEveryLayerIsItsOwn) {
  const auto store = make_store(std::array{kSmall, kWide}, 3);
  ASSERT_EQ(store->num_layers(), 2);
  EXPECT_EQ(store->bytes_per_page(), kSmall.page_bytes() + kWide.page_bytes());
  const auto fill = [&](auto action) {
    for (int layer = 0; layer < 2; ++layer) {
      const KvLayerView view = store->layer(layer);
      for (int id = 0; id < 3; ++id) action(view.page(PageId{id}), view.page_bytes, layer * 3 + id);
    }
  };
  fill([](std::byte* page, int64_t bytes, int value) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % 64, 0U);
    std::memset(page, value + 1, static_cast<size_t>(bytes));
  });
  fill([](std::byte* page, int64_t bytes, int value) {
    for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(static_cast<int>(page[i]), value + 1);
  });
}

TEST(KvStore, APageReadAndWrittenElsewhereIsTheSameInEveryLayer) {
  const KvLayout other{.kv_heads = 1, .head_dim = 48};
  const auto store = make_store(std::array{kSmall, other}, 3);
  std::vector<std::byte> bytes(static_cast<size_t>(store->bytes_per_page()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i % 251);
  store->write_page(PageId{1}, bytes);
  std::vector<std::byte> read(bytes.size());
  store->read_page(PageId{1}, read);
  EXPECT_EQ(read, bytes);
  EXPECT_EQ(store->layer(0).page(PageId{1})[5], bytes[5]);
  const auto first_bytes = static_cast<size_t>(store->layer(0).page_bytes);
  EXPECT_EQ(store->layer(1).page(PageId{1})[5], bytes[first_bytes + 5]);
  for (const int id : {0, 2}) {
    store->read_page(PageId{id}, read);
    EXPECT_EQ(read, std::vector<std::byte>(bytes.size())) << "page " << id;
  }
}

TEST(KvStore, CopiedTokensAreTheSameInEveryLayerAndNothingElseOfThePageIsNeeded) {
  const auto store = make_store(std::array{kSmall, kWide}, 2);
  std::vector<std::byte> bytes(static_cast<size_t>(store->bytes_per_page()));
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 % 251);
  for (const int num_tokens : {1, 2, 15, 16, 17, 127, 128}) {
    store->write_page(PageId{0}, bytes);
    store->write_page(PageId{1}, std::vector<std::byte>(bytes.size(), std::byte{255}));
    store->copy_tokens(PageId{0}, PageId{1}, num_tokens);
    int64_t num_other = 0;
    for (int layer = 0; layer < 2; ++layer) {
      const KvLayerView view = store->layer(layer);
      const KvLayout& layout = view.layout;
      const auto same = [&](int64_t offset) {
        return std::memcmp(view.page(PageId{0}) + offset, view.page(PageId{1}) + offset, 2) == 0;
      };
      for (int head = 0; head < layout.kv_heads; ++head) {
        for (int token = 0; token < kPageTokens; ++token) {
          for (int dim = 0; dim < layout.head_dim; ++dim) {
            const bool k = same(layout.k_offset(head) + 2 * layout.k_index(token, dim));
            const bool v = same(layout.v_offset(head) + 2 * layout.v_index(token, dim));
            if (token < num_tokens) {
              ASSERT_TRUE(k && v) << token << ' ' << dim;
            }
            num_other += token >= num_tokens + 16 && (k || v) ? 1 : 0;
          }
        }
      }
      EXPECT_FALSE(same(layout.means_offset(0)));
    }
    EXPECT_EQ(num_other, 0);
  }
}

TEST(KvStore, MemoryIsTouchedOnlyWhereAPageIsWritten) {
  const KvLayout layout{.kv_heads = 8, .head_dim = 128};
  const int64_t num_pages = 4096;  // over 2 GiB
  const auto store = make_store(std::array{layout}, num_pages);
  const KvLayerView view = store->layer(0);
  view.page(PageId{0})[0] = std::byte{1};
  const auto num_system_pages = static_cast<size_t>(num_pages * view.page_bytes / 4096);
  std::vector<unsigned char> resident(num_system_pages);
  ASSERT_EQ(mincore(view.pages, num_system_pages * 4096, resident.data()), 0);
  size_t num_resident = 0;
  for (const unsigned char flags : resident) num_resident += flags & 1;
  EXPECT_GE(num_resident, 1U);
  EXPECT_LE(num_resident, 1024U);  // two huge pages
}

TEST(KvStore, SizesThatCannotBeReservedAreRefused) {
  const KvLayout huge{.kv_heads = 1 << 16, .head_dim = 256};
  const std::vector<KvLayout> layers(1000, huge);
  const auto too_large = KvStore::create(layers, std::numeric_limits<int32_t>::max());
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().code, ErrorCode::kOutOfMemory);
  for (const int64_t num_pages : {int64_t{0}, int64_t{-1}, int64_t{1} << 31}) {
    const auto refused = KvStore::create(std::array{kSmall}, num_pages);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace winnow
