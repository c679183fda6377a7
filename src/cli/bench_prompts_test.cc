#include "cli/bench_prompts.h"

#include <gtest/gtest.h>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <numeric>
#include <set>

namespace winnow {
namespace {

std::vector<TokenId> ids_from(TokenId first, size_t count) {
  std::vector<TokenId> ids(count);
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<TokenId> ids_of(const boost::json::value& prompt) {
  std::vector<TokenId> ids;
  for (const auto& id : prompt.as_array()) ids.push_back(id.to_number<TokenId>());
  return ids;
}

TEST(BenchPrompts, IdsHaveTheExactLengthAndAreThoseOfTheText) {
  BenchPrompts prompts(ids_from(100, 500), 0, 1);
  EXPECT_TRUE(prompts.exact());
  for (const int64_t length : {1, 31, 32, 33, 1000, 4097}) {
    const std::vector<TokenId> ids = ids_of(prompts.next(length));
    EXPECT_EQ(std::ssize(ids), length);
    for (const TokenId id : ids) EXPECT_TRUE(id >= 100 && id < 600);
  }
  BenchPrompts tiny({7}, 0, 1);
  EXPECT_EQ(ids_of(tiny.next(40)), std::vector<TokenId>(40, 7));
}

TEST(BenchPrompts, OnlyTheSharedPrefixIsShared) {
  BenchPrompts prompts(ids_from(0, 1000), 100, 3);
  const std::vector<TokenId> prefix = ids_of(prompts.next(100));
  std::set<std::vector<TokenId>> rests;
  for (int i = 0; i < 50; ++i) {
    const std::vector<TokenId> ids = ids_of(prompts.next(228));
    EXPECT_EQ(std::vector<TokenId>(ids.begin(), ids.begin() + 100), prefix);
    rests.emplace(ids.begin() + 100, ids.end());
  }
  EXPECT_EQ(rests.size(), 50U);
  // A shorter prompt is a part of the prefix.
  EXPECT_EQ(ids_of(prompts.next(10)), std::vector<TokenId>(prefix.begin(), prefix.begin() + 10));
}

TEST(BenchPrompts, TheSeedDecides) {
  BenchPrompts a(ids_from(0, 1000), 64, 5);
  BenchPrompts b(ids_from(0, 1000), 64, 5);
  BenchPrompts c(ids_from(0, 1000), 64, 6);
  const auto prompt = a.next(200);
  EXPECT_EQ(prompt, b.next(200));
  EXPECT_NE(prompt, c.next(200));
}

TEST(BenchPrompts, TextHasThreeWordsForFourTokens) {
  BenchPrompts prompts("  one two\nthree\tfour ", 0, 1);
  EXPECT_FALSE(prompts.exact());
  const boost::json::value prompt = prompts.next(40);
  const std::string text(prompt.as_string());
  EXPECT_EQ(std::count(text.begin(), text.end(), ' '), 29);
  EXPECT_FALSE(prompts.next(1).as_string().empty());
}

TEST(BenchPrompts, BodiesAskForAStreamOfSoManyTokens) {
  const auto body = boost::json::parse(completion_body("m\xFF", boost::json::array{1, 2}, 9));
  EXPECT_EQ(body.at("max_tokens"), 9);
  EXPECT_EQ(body.at("prompt"), (boost::json::array{1, 2}));
  EXPECT_EQ(body.at("stream"), true);
  EXPECT_EQ(body.at("ignore_eos"), true);
  EXPECT_EQ(body.at("stream_options").at("include_usage"), true);
}

}  // namespace
}  // namespace winnow
