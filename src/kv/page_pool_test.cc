#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace winnow {
namespace {

TEST(PagePool, TakesTheLowestFreePageFirst) {
  PagePool pool(3);
  EXPECT_EQ(pool.take(), PageId{0});
  EXPECT_EQ(pool.take(), PageId{1});
  EXPECT_EQ(pool.take(), PageId{2});
  EXPECT_EQ(pool.take(), std::nullopt);
  EXPECT_TRUE(pool.give_back(PageId{1}));
  EXPECT_TRUE(pool.give_back(PageId{0}));
  EXPECT_EQ(pool.take(), PageId{0});
  EXPECT_EQ(pool.num_free(), 1);
}

TEST(PagePool, ASharedPageIsFreeOnceItsLastOwnerGivesItBack) {
  PagePool pool(2);
  const PageId page = *pool.take();
  pool.share(page);
  pool.share(page);
  EXPECT_EQ(pool.num_owners(page), 3);
  EXPECT_FALSE(pool.give_back(page));
  EXPECT_FALSE(pool.give_back(page));
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_TRUE(pool.give_back(page));
  EXPECT_EQ(pool.num_owners(page), 0);
  EXPECT_EQ(pool.num_free(), 2);
}

TEST(PagePool, RandomRunsAgreeWithACountOfOwners) {
  std::mt19937 rng(20);
  for (int run = 0; run < 20; ++run) {
    const int num_pages = std::uniform_int_distribution(1, 40)(rng);
    PagePool pool(num_pages);
    std::set<int> free;
    std::map<int, int> owners;
    for (int i = 0; i < num_pages; ++i) free.insert(i);
    const auto any_taken = [&] { return *std::next(owners.begin(), rng() % owners.size()); };
    for (int step = 0; step < 500; ++step) {
      const int choice = std::uniform_int_distribution(0, 9)(rng);
      if (choice < 4) {
        const std::optional<PageId> got = pool.take();
        ASSERT_EQ(got.has_value(), !free.empty());
        if (!got) continue;
        ASSERT_EQ(static_cast<int>(*got), *free.begin());
        owners[*free.begin()] = 1;
        free.erase(free.begin());
      } else if (!owners.empty()) {
        const auto [id, count] = any_taken();
        if (choice < 6) {
          pool.share(PageId{id});
          owners[id] = count + 1;
        } else {
          ASSERT_EQ(pool.give_back(PageId{id}), count == 1);
          if (--owners[id] == 0) {
            owners.erase(id);
            free.insert(id);
          }
        }
        ASSERT_EQ(pool.num_owners(PageId{id}), owners.contains(id) ? owners[id] : 0);
      }
      ASSERT_EQ(pool.num_free(), static_cast<int64_t>(free.size()));
      pool.check_invariants();
    }
  }
}

TEST(PagePool, ItsObserverHearsOfOneOwnerAndOfASecond) {
  struct Log : PageOwnersObserver {
    void on_one_owner_left(PageId id) override { news += "1:" + std::to_string(int(id)) + " "; }
    void on_second_owner(PageId id) override { news += "2:" + std::to_string(int(id)) + " "; }
    std::string news;
  } log;
  PagePool pool(2);
  pool.observe(&log);
  const PageId page = *pool.take();
  pool.share(page);
  pool.share(page);
  pool.give_back(page);
  pool.give_back(page);
  pool.give_back(page);
  EXPECT_EQ(log.news, "2:0 1:0 ");
}

using PagePoolDeathTest = ::testing::Test;

TEST(PagePoolDeathTest, APageIsNotGivenBackTwice) {
  PagePool pool(2);
  EXPECT_DEATH(pool.give_back(PageId{0}), "taken");
  const PageId id = *pool.take();
  pool.give_back(id);
  EXPECT_DEATH(pool.give_back(id), "taken");
  EXPECT_DEATH(pool.share(id), "taken");
  EXPECT_DEATH(pool.give_back(PageId{2}), "num_pages");
}

}  // namespace
}  // namespace winnow
