#include "kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace winnow {
namespace {

using NodeId = PrefixCache::NodeId;
using Tokens = std::vector<TokenId>;

Tokens page_of(TokenId token) { return Tokens(kPageTokens, token); }

// A pool and a cache, and requests that file one page after another.
struct Fixture {
  explicit Fixture(int64_t num_pages, int hash_bits = 64)
      : pool(num_pages), cache(pool, 0x5eed, hash_bits) {}

  NodeId file(NodeId parent, const Tokens& tokens, PageMake make = PageKind::kDense) {
    const PageId page = *pool.take();
    const NodeId node = cache.insert(parent, tokens, make, page);
    EXPECT_EQ(cache.page(node), page);
    return node;
  }
  void release(NodeId node) { pool.give_back(cache.page(node)); }

  PagePool pool;
  PrefixCache cache;
};

TEST(PrefixCache, FindsAPageByItsTokensItsKindAndThePagesAbove) {
  Fixture f(4);
  const NodeId root = f.cache.root("a");
  const NodeId first = f.file(root, page_of(1));
  const NodeId second = f.file(first, page_of(2), PageKind::kSparse);
  EXPECT_EQ(f.cache.find(root, page_of(1), PageKind::kDense), first);
  EXPECT_EQ(f.cache.find(first, page_of(2), PageKind::kSparse), second);
  EXPECT_EQ(f.cache.find(first, page_of(2), PageKind::kDense), std::nullopt);
  EXPECT_EQ(f.cache.find(root, page_of(2), PageKind::kSparse), std::nullopt);
  Tokens almost = page_of(1);
  almost.back() = 2;
  EXPECT_EQ(f.cache.find(root, almost, PageKind::kDense), std::nullopt);
  f.cache.check_invariants();
}

TEST(PrefixCache, AGeneratedPageEqualsOnlyThoseWhosePromptEndedAtTheSameToken) {
  Fixture f(4);
  const NodeId root = f.cache.root("a");
  const NodeId ten = f.file(root, page_of(1), PageMake(PageKind::kGenerated, 10));
  const NodeId none = f.file(root, page_of(1), PageKind::kGenerated);
  EXPECT_NE(ten, none);
  EXPECT_EQ(f.cache.find(root, page_of(1), PageMake(PageKind::kGenerated, 10)), ten);
  EXPECT_EQ(f.cache.find(root, page_of(1), PageMake(PageKind::kGenerated, 0)), none);
  EXPECT_EQ(f.cache.find(root, page_of(1), PageMake(PageKind::kGenerated, 11)), std::nullopt);
  EXPECT_TRUE(f.cache.find(root, page_of(1), PageKind::kGenerated).has_value());
  EXPECT_EQ(f.cache.make(ten).prompt_tokens, 10);
  f.cache.check_invariants();
}

// Of all pages below `parent`, looked at one by one.
int32_t most_in_common(const std::vector<Tokens>& filed, const Tokens& tokens) {
  int64_t most = 0;
  for (const Tokens& other : filed) {
    const auto end = std::mismatch(other.begin(), other.end(), tokens.begin(), tokens.end()).first;
    most = std::max(most, end - other.begin());
  }
  return static_cast<int32_t>(most);
}

TEST(PrefixCache, FindsThePageWithMostDenseTokensOfAPromptInCommon) {
  std::mt19937 random(3);
  const auto tokens_of = [&](size_t num_tokens) {
    Tokens tokens(num_tokens);
    for (TokenId& token : tokens) token = random() % 16 == 0 ? 1 : 0;
    return tokens;
  };
  Fixture f(400);
  const NodeId root = f.cache.root("a");
  const NodeId parents[] = {f.file(root, page_of(5)), f.file(root, page_of(6))};
  std::vector<Tokens> filed[2];
  for (int i = 0; i < 300; ++i) {
    const auto below = static_cast<size_t>(random() % 2);
    const size_t num_tokens = random() % 3 == 0 ? 128 : 1 + random() % 127;
    const Tokens tokens = tokens_of(num_tokens);
    const int32_t most = most_in_common(filed[below], tokens);
    const auto found = f.cache.find_common(parents[below], tokens);
    EXPECT_EQ(found ? found->num_tokens : 0, most);
    const PageId page = *f.pool.take();
    if (num_tokens == 128) {
      const bool sparse = random() % 2 == 0;
      const NodeId node = f.cache.insert(parents[below], tokens,
                                         sparse ? PageKind::kSparse : PageKind::kDense, page);
      EXPECT_EQ(f.cache.page(node), page);
      if (!sparse) filed[below].push_back(tokens);
    } else if (f.cache.insert_open(parents[below], tokens, page)) {
      EXPECT_LT(most, static_cast<int32_t>(num_tokens));
      filed[below].push_back(tokens);
    } else {
      EXPECT_EQ(most, static_cast<int32_t>(num_tokens));
    }
    f.pool.give_back(page);
  }
  f.cache.check_invariants();
}

TEST(PrefixCache, AnOpenPageIsNotFoundAsAWholeOneAndIsFiledAgainWhenFull) {
  Fixture f(4);
  const NodeId root = f.cache.root("a");
  const PageId page = *f.pool.take();
  const NodeId open = *f.cache.insert_open(root, Tokens(40, 1), page);
  f.cache.check_invariants();
  EXPECT_EQ(f.cache.find(root, page_of(1), PageKind::kGenerated), std::nullopt);
  EXPECT_EQ(f.cache.find_common(root, page_of(1))->num_tokens, 40);
  EXPECT_EQ(f.cache.find_common(root, page_of(1))->page, page);
  EXPECT_EQ(f.cache.find_common(root, page_of(2)), std::nullopt);
  f.cache.remove_open(open);
  EXPECT_EQ(f.pool.num_owners(page), 1);
  EXPECT_EQ(f.cache.find_root("a"), std::nullopt);
  f.cache.insert(f.cache.root("a"), page_of(1), PageMake(PageKind::kGenerated, 40), page);
  EXPECT_EQ(f.cache.find_common(f.cache.root("a"), page_of(1))->num_tokens, 40);
  f.pool.give_back(page);
  f.cache.check_invariants();
  EXPECT_TRUE(f.cache.evict_one());
  EXPECT_EQ(f.pool.num_free(), 4);
  EXPECT_EQ(f.cache.find_common(f.cache.root("a"), page_of(1)), std::nullopt);
}

TEST(PrefixCache, ScopesDoNotSeeOneAnother) {
  Fixture f(4);
  const NodeId root = f.cache.root("a");
  f.file(root, page_of(1));
  EXPECT_EQ(f.cache.find_root("a"), root);
  EXPECT_EQ(f.cache.find_root("b"), std::nullopt);
  EXPECT_EQ(f.cache.find(f.cache.root("b"), page_of(1), PageKind::kDense), std::nullopt);
}

TEST(PrefixCache, AnEqualPageStaysUnfiled) {
  Fixture f(4);
  const NodeId root = f.cache.root("a");
  const NodeId first = f.file(root, page_of(1));
  const PageId copy = *f.pool.take();
  EXPECT_EQ(f.cache.insert(root, page_of(1), PageKind::kDense, copy), first);
  EXPECT_EQ(f.pool.num_owners(copy), 1);
  EXPECT_EQ(f.cache.num_filed(), 1);
}

TEST(PrefixCache, EvictsWhatWentUnusedLongestLeavesFirst) {
  Fixture f(8);
  const NodeId root = f.cache.root("a");
  const NodeId trunk = f.file(root, page_of(1));
  const NodeId old = f.file(trunk, page_of(2));
  const NodeId young = f.file(trunk, page_of(3));
  for (const NodeId node : {old, young, trunk}) f.release(node);
  EXPECT_EQ(f.cache.num_evictable(), 3);
  f.cache.touch(old);
  EXPECT_TRUE(f.cache.evict_one());
  EXPECT_EQ(f.cache.find(trunk, page_of(3), PageKind::kDense), std::nullopt);
  EXPECT_EQ(f.cache.find(trunk, page_of(2), PageKind::kDense), old);
  EXPECT_TRUE(f.cache.evict_one());
  EXPECT_EQ(f.cache.find(root, page_of(1), PageKind::kDense), trunk);
  f.cache.check_invariants();
  EXPECT_TRUE(f.cache.evict_one());
  EXPECT_FALSE(f.cache.evict_one());
  EXPECT_EQ(f.pool.num_free(), 8);
  f.cache.check_invariants();
}

TEST(PrefixCache, APageInUseIsNotEvicted) {
  Fixture f(4);
  const NodeId root = f.cache.root("a");
  const NodeId first = f.file(root, page_of(1));
  const NodeId second = f.file(first, page_of(2));
  f.release(second);
  EXPECT_TRUE(f.cache.evict_one());
  EXPECT_FALSE(f.cache.evict_one());
  f.release(first);
  f.pool.share(f.cache.page(first));
  EXPECT_EQ(f.cache.num_evictable(), 0);
  EXPECT_FALSE(f.cache.evict_one());
  f.release(first);
  EXPECT_TRUE(f.cache.evict_one());
}

TEST(PrefixCache, EmptyRootsAreDropped) {
  Fixture f(4);
  for (const char* scope : {"a", "b", "c"}) f.cache.root(scope);
  EXPECT_EQ(f.cache.num_roots(), 1);
  const NodeId page = f.file(f.cache.root("d"), page_of(1));
  EXPECT_EQ(f.cache.num_roots(), 1);
  f.release(page);
  f.cache.evict_one();
  EXPECT_EQ(f.cache.num_roots(), 0);
  f.cache.check_invariants();
}

TEST(PrefixCache, ItGivesItsPagesBackWhenItEnds) {
  PagePool pool(2);
  {
    PrefixCache cache(pool, 1);
    const PageId page = *pool.take();
    cache.insert(cache.root(""), page_of(1), PageKind::kDense, page);
    pool.give_back(page);
    EXPECT_EQ(pool.num_free(), 1);
  }
  EXPECT_EQ(pool.num_free(), 2);
}

// Prompts of three pages under a hash that has 256 values: every page found holds the tokens that
// were asked for.
TEST(PrefixCache, CollidingHashesFindNoForeignPage) {
  std::mt19937 rng(7);
  Fixture f(600, 8);
  std::vector<std::vector<Tokens>> prompts;
  std::vector<TokenId> filed(600, -1);  // the token that fills each page
  int num_found = 0;
  for (int i = 0; i < 5000; ++i) {
    if (i % 10 == 9) {
      prompts.push_back(
          prompts[prompts.size() - 1 - rng() % std::min<size_t>(prompts.size(), 150)]);
    } else {
      auto token = [&] { return page_of(static_cast<TokenId>(rng() % 1000)); };
      prompts.push_back({token(), token(), token()});
    }
    NodeId at = f.cache.root("a");
    std::vector<NodeId> chain;
    for (const Tokens& tokens : prompts.back()) {
      if (const auto found = f.cache.find(at, tokens, PageKind::kDense)) {
        ++num_found;
        at = *found;
        f.pool.share(f.cache.page(at));
        ASSERT_EQ(filed[static_cast<size_t>(f.cache.page(at))], tokens[0]);
      } else {
        ASSERT_TRUE(f.pool.num_free() > 0 || f.cache.evict_one());
        at = f.file(at, tokens);
        filed[static_cast<size_t>(f.cache.page(at))] = tokens[0];
      }
      chain.push_back(at);
    }
    for (; !chain.empty(); chain.pop_back()) f.release(chain.back());
    if (i % 100 == 0) f.cache.check_invariants();
  }
  EXPECT_GT(num_found, 600);
}

using PrefixCacheDeathTest = ::testing::Test;

TEST(PrefixCacheDeathTest, APageIsFiledOnce) {
  Fixture f(2);
  const NodeId first = f.file(f.cache.root("a"), page_of(1));
  EXPECT_DEATH(f.cache.insert(first, page_of(2), PageKind::kDense, f.cache.page(first)),
               "node_of_page");
}

}  // namespace
}  // namespace winnow
