#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "support/slow_build.h"

namespace winnow {
namespace {

constexpr int kB = kPageTokens;

std::vector<TokenId> text(int64_t num_tokens, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<size_t>(num_tokens));
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = first + static_cast<TokenId>(i);
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> a, const std::vector<TokenId>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A scheduler whose requests answer 1'000'000 + the number of tokens before, and end when their
// answer is as long as it may be.
class Bench {
 public:
  explicit Bench(int64_t num_pages, const SchedulerLimits& limits = {})
      : pool(num_pages), cache(pool, 3), scheduler(limits, pool, cache) {}

  RequestId submit(std::vector<TokenId> prompt, int64_t max_new_tokens = 1, CacheUse use = {},
                   const std::optional<SparseRule>& rule = {}) {
    const RequestId id{++last_id_};
    const PromptMode mode = PromptMode::of(rule, std::ssize(prompt));
    answer_end_[id] = std::ssize(prompt) + max_new_tokens;
    EXPECT_EQ(scheduler.submit({id, std::move(prompt), max_new_tokens, mode, use}),
              Admission::kQueued);
    return id;
  }
  Admission try_submit(std::vector<TokenId> prompt, int64_t max_new_tokens) {
    return scheduler.submit({RequestId{++last_id_}, std::move(prompt), max_new_tokens, {}, {}});
  }

  StepPlan step(int32_t budget = 1 << 20) {
    StepPlan plan = scheduler.plan(budget);
    EXPECT_TRUE(scheduler.begin(plan));
    finish(plan);
    return plan;
  }
  void finish(const StepPlan& plan) {
    std::vector<StepResult> results;
    for (const SequenceStep& step : plan.steps) {
      const int64_t size = std::ssize(scheduler.find(step.id)->tokens);
      StepResult result;
      if (step.wants_token) {
        result.next_token = static_cast<TokenId>(1'000'000 + size);
        result.ended = size + 1 == answer_end_[step.id];
        ++num_answered;
      }
      results.push_back(result);
    }
    exchanged = scheduler.commit(plan, results);
    scheduler.check_invariants();
  }
  void run(int32_t budget = 1 << 20) {
    for (int i = 0; scheduler.has_work(); ++i) {
      ASSERT_LT(i, 100000);
      step(budget);
    }
  }
  // How many tokens of `prompt` the cache has for it.
  int32_t cached(std::vector<TokenId> prompt, CacheUse use = {},
                 const std::optional<SparseRule>& rule = {}) {
    const RequestId id = submit(std::move(prompt), 1, std::move(use), rule);
    const StepPlan plan = scheduler.plan(1 << 20);
    const int32_t tokens = plan.admitted.at(0).cached_tokens;
    scheduler.end(id);
    return tokens;
  }
  int64_t num_live() const { return pool.num_pages() - pool.num_free() - cache.num_evictable(); }

  PagePool pool;
  PrefixCache cache;
  Scheduler scheduler;
  std::vector<ExchangedPage> exchanged;
  int64_t num_answered = 0;

 private:
  uint64_t last_id_ = 0;
  std::map<RequestId, int64_t> answer_end_;
};

TEST(Scheduler, ChunksEndAtPagesOrAtThePromptsEndWhateverTheBudget) {
  for (const int budget : {0, 1, 97, 128, 130, 1024, 1 << 30}) {
    SCOPED_TRACE(budget);
    Bench bench(40);
    bench.submit(text(3000));
    int32_t begin = 0;
    while (begin < 3000) {
      const StepPlan plan = bench.step(budget);
      ASSERT_EQ(plan.steps.size(), 1U);
      const SequenceStep& step = plan.steps[0];
      ASSERT_EQ(step.begin, begin);
      const int64_t whole_pages = std::max<int64_t>(1, pages_for(budget)) * kB;
      ASSERT_EQ(step.num_tokens, std::min<int64_t>(whole_pages, 3000 - begin));
      begin += step.num_tokens;
      ASSERT_EQ(step.wants_token, begin == 3000);
    }
  }
}

TEST(Scheduler, EveryDecodingRequestIsInEveryStepBehindThePrompts) {
  Bench bench(100);
  for (int i = 0; i < 3; ++i) bench.submit(text(10, i * 1000), 50);
  bench.step();
  bench.submit(text(4000, 5000), 5);
  for (int i = 0; i < 20; ++i) {
    const StepPlan plan = bench.step(256);
    ASSERT_EQ(plan.steps.size(), 4U);
    if (i < 15) {
      ASSERT_EQ(plan.steps[0].phase, Phase::kPrompt);
    }
    for (size_t s = 1; s < 4; ++s) ASSERT_EQ(plan.steps[s].phase, Phase::kGenerate);
  }
}

TEST(Scheduler, ShortPromptsOvertakeALongOneAndShareAStep) {
  Bench bench(100);
  const RequestId slow = bench.submit(text(5000));
  bench.step(512);
  const RequestId a = bench.submit(text(50, 6000));
  const RequestId b = bench.submit(text(60, 7000));
  const StepPlan plan = bench.step(512);
  ASSERT_EQ(plan.steps.size(), 3U);
  EXPECT_EQ(plan.steps[0].id, a);
  EXPECT_EQ(plan.steps[1].id, b);
  EXPECT_EQ(plan.steps[2].id, slow);
  EXPECT_EQ(plan.steps[2].num_tokens, 384);
}

TEST(Scheduler, AStreamOfShortPromptsDoesNotStarveALongOne) {
  Bench bench(200);
  const int length = kSlowBuild ? 2500 : 10000;
  const RequestId slow = bench.submit(text(length));
  TokenId first = 20000;
  int num_steps = 0;
  for (; bench.scheduler.find(slow) != nullptr; ++num_steps) {
    ASSERT_LT(num_steps, 20000);
    // More work than a step has room for, in every step.
    if (bench.scheduler.num_waiting() < 100) {
      for (int i = 0; i < 2; ++i) bench.submit(text(100, first += 1000));
    }
    bench.step(128);
  }
  EXPECT_GT(num_steps, length / 128 + 10);
}

TEST(Scheduler, WhatCanNeverFitIsRefusedAndTheNextOneRuns) {
  Bench bench(4);
  EXPECT_EQ(bench.scheduler.most_tokens(), 4 * kB);
  EXPECT_EQ(bench.try_submit(text(4 * kB + 1), 1), Admission::kNeverFits);
  EXPECT_EQ(bench.try_submit(text(4 * kB), 1), Admission::kNeverFits);
  EXPECT_EQ(bench.try_submit(text(10), std::numeric_limits<int64_t>::max()), Admission::kNeverFits);
  EXPECT_FALSE(bench.scheduler.has_work());
  bench.submit(text(10), 4 * kB - 10);
  bench.run();
  EXPECT_EQ(bench.num_answered, 4 * kB - 10);
}

TEST(Scheduler, TheQueueIsBounded) {
  Bench bench(4, {.max_running = 1, .max_waiting = 2});
  bench.submit(text(10), 5);
  bench.submit(text(10), 5);
  EXPECT_EQ(bench.try_submit(text(10), 5), Admission::kQueueFull);
  bench.step();
  bench.submit(text(10), 5);
  EXPECT_EQ(bench.scheduler.num_running(), 1);
  EXPECT_EQ(bench.scheduler.num_waiting(), 2);
  bench.run();
}

TEST(Scheduler, ASequenceHoldsAsManyPagesAsItsTokensNeed) {
  for (const int prompt : {kB - 1, kB, kB + 1, 2 * kB - 1, 2 * kB, 2 * kB + 1}) {
    Bench bench(8);
    const RequestId id = bench.submit(text(prompt), 2 * kB + 3);
    for (int generated = 0; generated < 2 * kB + 3; ++generated) {
      const StepPlan plan = bench.scheduler.plan(4096);
      ASSERT_TRUE(bench.scheduler.begin(plan));
      ASSERT_EQ(std::ssize(bench.scheduler.find(id)->pages), pages_for(prompt + generated));
      bench.finish(plan);
    }
    EXPECT_FALSE(bench.scheduler.has_work());
    EXPECT_EQ(bench.num_live(), 0);
  }
}

TEST(Scheduler, AFullHitLeavesOneTokenToCompute) {
  for (const int prompt : {1, kB, 2 * kB, 2 * kB + 1}) {
    Bench bench(8);
    bench.submit(text(prompt), 20);
    bench.run();
    bench.submit(text(prompt), 20);
    const StepPlan plan = bench.step();
    EXPECT_EQ(plan.admitted.at(0).cached_tokens, prompt - 1);
    EXPECT_EQ(plan.steps.at(0).begin, plan.admitted[0].cached_tokens);
    EXPECT_TRUE(plan.steps[0].wants_token);
  }
}

TEST(Scheduler, ExactReuseTakesPromptPagesOnlyAndAllReuseAnswersToo) {
  Bench bench(40);
  bench.submit(text(200), 300);
  bench.run();
  const std::vector<TokenId> answered = [&] {
    std::vector<TokenId> tokens = text(200);
    for (int i = 200; i < 500; ++i) tokens.push_back(1'000'000 + i);
    return joined(tokens, text(100, 5000));
  }();
  EXPECT_EQ(bench.cached(answered), 200);
  EXPECT_EQ(bench.cached(answered, {.exact = false}), 3 * kB);
  EXPECT_EQ(bench.cached(answered, {.scope = "other", .exact = false}), 0);
  EXPECT_EQ(bench.cached(answered, {.read = false, .exact = false}), 0);
}

TEST(Scheduler, SparsePagesServeOnlyWhereAFreshRunIsSparse) {
  const SparseRule rule{.min_tokens = 1024, .dense_tokens = 2 * kB, .tail_tokens = kB};
  const CacheUse exact;
  const CacheUse all{.exact = false};
  Bench bench(60);
  bench.submit(text(10 * kB), 1, {}, rule);  // pages 2 to 8 sparse
  bench.run();
  EXPECT_EQ(bench.cached(text(10 * kB), exact, rule), 10 * kB - 1);
  // A longer prompt is sparse at page 9, too, where the cache has a dense one.
  EXPECT_EQ(bench.cached(text(12 * kB), exact, rule), 9 * kB);
  EXPECT_EQ(bench.cached(text(12 * kB), all, rule), 10 * kB);
  // A shorter one is dense at page 8, and sparse pages never stand in for dense ones.
  EXPECT_EQ(bench.cached(text(9 * kB + 5), exact, rule), 8 * kB);
  EXPECT_EQ(bench.cached(text(9 * kB + 5), all, rule), 8 * kB);
  EXPECT_EQ(bench.cached(text(7 * kB), exact, rule), 2 * kB);
}

// A conversation: the next prompt goes on behind the last one, which ended within a page.
TEST(Scheduler, TokensOfTheLastPageOfAPromptAreCopiedWhileItIsFilledAndAfterwards) {
  for (const int answer : {5, 300}) {
    Bench bench(40);
    const RequestId first = bench.submit(text(200), answer);
    bench.step();
    const PageId open = bench.scheduler.find(first)->pages.at(1);
    for (int round = 0; round < 3; ++round) {
      const RequestId next = bench.submit(joined(text(180), text(100, 7000 + 1000 * round)), 2);
      const StepPlan plan = bench.scheduler.plan(1 << 20);
      EXPECT_EQ(plan.admitted.at(0).cached_tokens, 180);
      const auto copies = bench.scheduler.begin(plan);
      ASSERT_TRUE(copies.has_value());
      ASSERT_EQ(copies->size(), 1U);
      EXPECT_TRUE(round > 0 || copies->at(0).from == open);
      EXPECT_EQ(copies->at(0).to, bench.scheduler.find(next)->pages.at(1));
      EXPECT_EQ(copies->at(0).num_tokens, 180 - kB);
      EXPECT_EQ(bench.pool.num_owners(copies->at(0).to), 1);
      bench.finish(plan);
      EXPECT_EQ(bench.scheduler.find(next)->cached_tokens, 180);
      bench.run();
    }
    EXPECT_EQ(bench.num_live(), 0);
  }
}

TEST(Scheduler, NothingIsCopiedUnlessAskedForOrOfOthers) {
  Bench bench(40);
  bench.submit(text(200), 5);
  bench.run();
  EXPECT_EQ(bench.cached(text(190)), 189);
  EXPECT_EQ(bench.cached(text(190), {.read = false}), 0);
  EXPECT_EQ(bench.cached(text(190), {.scope = "other"}), 0);
  // Answers are no prompts, though they begin alike.
  std::vector<TokenId> answered = text(200);
  for (int i = 200; i < 204; ++i) answered.push_back(1'000'000 + i);
  EXPECT_EQ(bench.cached(joined(answered, text(9, 5000)), {.exact = false}), 200);
}

// The page that is copied has to be there beside the new one until it is copied.
TEST(Scheduler, NothingIsCopiedWhereThePageIsNeededForWhatIsNew) {
  for (const int num_pages : {3, 4}) {
    Bench bench(num_pages);
    bench.submit(text(kB + 60), 1);
    bench.run();
    EXPECT_EQ(bench.cache.num_filed(), 2);
    bench.submit(joined(text(kB + 50), text(kB, 7000)), 1);
    const StepPlan plan = bench.step();
    EXPECT_EQ(plan.admitted.at(0).cached_tokens, num_pages == 3 ? kB : kB + 50);
    bench.run();
    EXPECT_EQ(bench.num_live(), 0);
  }
}

TEST(Scheduler, APageIsFoundOnceItsStepIsCommitted) {
  Bench bench(20);
  bench.submit(text(600));
  const StepPlan plan = bench.scheduler.plan(256);
  ASSERT_TRUE(bench.scheduler.begin(plan));
  EXPECT_EQ(bench.cache.num_filed(), 0);
  bench.finish(plan);
  EXPECT_EQ(bench.cache.num_filed(), 2);
  EXPECT_EQ(bench.cached(text(600)), 256);
}

TEST(Scheduler, EqualPromptsAtOnceGoOnBehindTheFirst) {
  for (const int num : {2, 8}) {
    Bench bench(100);
    std::vector<RequestId> ids;
    for (int i = 0; i < num; ++i) ids.push_back(bench.submit(text(5 * kB), 10));
    int64_t num_prompt_tokens = 0;
    for (int i = 0; i < 20; ++i) {
      for (const SequenceStep& step : bench.step(3 * kB).steps) {
        num_prompt_tokens += step.phase == Phase::kPrompt ? step.num_tokens : 0;
      }
    }
    // The first runs five pages, the others their last token, and one of them shares a step with
    // the first while that runs its fourth.
    EXPECT_EQ(num_prompt_tokens, (5 + 1) * kB + num - 1);
    EXPECT_FALSE(bench.scheduler.has_work());
  }
}

TEST(Scheduler, ARunningPromptAdoptsPagesFiledMeanwhile) {
  Bench bench(60);
  const RequestId slow = bench.submit(joined(text(6 * kB), text(10 * kB, 9000)), 2);
  bench.step(kB);
  ASSERT_EQ(bench.scheduler.find(slow)->computed_tokens, kB);
  bench.submit(text(6 * kB), 1);
  for (int i = 0; i < 5; ++i) bench.step(kB);
  ASSERT_EQ(bench.scheduler.find(slow)->computed_tokens, kB);
  const StepPlan plan = bench.step(kB);
  ASSERT_EQ(plan.adopted.size(), 1U);
  EXPECT_EQ(plan.adopted[0].id, slow);
  EXPECT_EQ(plan.adopted[0].computed_tokens, 6 * kB);
  EXPECT_EQ(plan.steps.at(0).begin, 6 * kB);
  EXPECT_EQ(bench.scheduler.find(slow)->cached_tokens, 5 * kB);
  bench.run();
  EXPECT_EQ(bench.num_live(), 0);
}

TEST(Scheduler, EqualPagesOfOneStepAreExchangedForTheFirst) {
  Bench bench(20);
  const RequestId a = bench.submit(text(2 * kB + 5), 5);
  const RequestId b = bench.submit(text(2 * kB + 5), 5);
  bench.step();
  ASSERT_EQ(bench.exchanged.size(), 2U);
  EXPECT_EQ(bench.exchanged[1].id, b);
  EXPECT_EQ(bench.exchanged[1].page_idx, 1);
  const ScheduledSequence& first = *bench.scheduler.find(a);
  const ScheduledSequence& second = *bench.scheduler.find(b);
  EXPECT_EQ(first.pages[0], second.pages[0]);
  EXPECT_EQ(first.pages[1], second.pages[1]);
  EXPECT_NE(first.pages[2], second.pages[2]);
  EXPECT_EQ(bench.num_live(), 4);
}

TEST(Scheduler, PagesOfACancelledPromptServeTheRetry) {
  Bench bench(20);
  const RequestId id = bench.submit(text(1500));
  bench.step(512);
  bench.step(512);
  bench.scheduler.end(id);
  bench.scheduler.check_invariants();
  EXPECT_EQ(bench.num_live(), 0);
  EXPECT_EQ(bench.cached(text(1500)), 1024);
}

TEST(Scheduler, EndingARequestGivesItsPagesBackWhereverItStands) {
  for (int steps = 0; steps < 600; steps += 7) {
    Bench bench(8);
    const RequestId a = bench.submit(text(300), 500);
    const RequestId b = bench.submit(text(310, 5000), 500);
    for (int i = 0; i < steps; ++i) bench.step(kB);
    bench.scheduler.end(b);
    bench.scheduler.check_invariants();
    bench.scheduler.end(a);
    bench.scheduler.check_invariants();
    EXPECT_EQ(bench.num_live(), 0);
    EXPECT_FALSE(bench.scheduler.has_work());
    bench.scheduler.end(a);
  }
}

// Eight requests whose answers do not fit together.
TEST(Scheduler, AFullPoolEndsInNoThrashing) {
  Bench bench(64, {.max_rerun_tokens = 64});
  const int blocks = kSlowBuild ? 12 : 36;
  std::vector<RequestId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(bench.submit(text(4 * kB, i * 10000), blocks * kB));
  std::map<RequestId, int> preemptions;
  std::vector<int64_t> answered;
  for (int i = 0; bench.scheduler.has_work(); ++i) {
    ASSERT_LT(i, 100000);
    const RequestId oldest = *std::ranges::find_if(
        ids, [&](RequestId id) { return bench.scheduler.find(id) != nullptr; });
    for (const RequestId id : bench.step(512).preempted) {
      ++preemptions[id];
      EXPECT_NE(id, oldest);
    }
    answered.push_back(bench.num_answered);
    if (i >= 50) {
      ASSERT_GT(answered.back(), answered[answered.size() - 51]);
    }
  }
  EXPECT_EQ(bench.num_answered, 8 * blocks * kB);
  EXPECT_GT(preemptions.size(), 3U);
  for (const auto& [id, count] : preemptions) EXPECT_LE(count, 3);
}

TEST(Scheduler, APreemptedRequestNeedNotWaitUntilItsLongestAnswerFits) {
  Bench bench(18);
  const RequestId longest = bench.submit(text(5 * kB, 1), 10 * kB);
  bench.step();
  const RequestId ends_soon = bench.submit(text(5 * kB, 2000), kB + 12);
  bench.step();
  // May fill the whole pool.
  const RequestId endless = bench.submit(text(4 * kB, 4000), 14 * kB);
  const auto is_running = [&](RequestId id) { return bench.scheduler.find(id)->running; };
  while (bench.scheduler.find(endless)->num_preemptions == 0) bench.step();
  ASSERT_TRUE(bench.scheduler.find(ends_soon) != nullptr && !is_running(endless));
  while (bench.scheduler.find(ends_soon) != nullptr) bench.step();
  bench.step();
  EXPECT_TRUE(is_running(endless) && is_running(longest));
}

TEST(Scheduler, APreemptedRequestRunsItsPromptAsPromptAndItsAnswerTokenByToken) {
  for (const int max_rerun_tokens : {1, 7}) {
    Bench bench(8, {.max_rerun_tokens = max_rerun_tokens});
    const RequestId a = bench.submit(text(3 * kB), 5 * kB);
    bench.step();
    const RequestId b = bench.submit(text(2 * kB, 5000), 5 * kB);
    bench.step();
    while (bench.scheduler.find(b)->num_preemptions == 0) bench.step();
    const auto before = static_cast<int32_t>(bench.scheduler.find(b)->tokens.size());
    ASSERT_GT(before, 2 * kB + 10);
    while (bench.scheduler.find(a) != nullptr) bench.step();
    const auto rerun = [&](const SequenceStep& step, int32_t begin) {
      ASSERT_EQ(step.begin, begin);
      ASSERT_EQ(step.phase, begin < 2 * kB ? Phase::kPrompt : Phase::kGenerate);
      ASSERT_EQ(step.num_tokens, begin < 2 * kB ? 2 * kB - begin : 1);
      ASSERT_EQ(step.wants_token, begin + step.num_tokens == before);
    };
    int32_t computed = -1;
    while (computed < before) {
      const StepPlan plan = bench.step();
      if (computed < 0) computed = plan.admitted.at(0).cached_tokens;
      ASSERT_EQ(std::ssize(plan.steps),
                computed < 2 * kB ? 1 : std::min(max_rerun_tokens, before - computed));
      for (const SequenceStep& step : plan.steps) {
        rerun(step, computed);
        computed += step.num_tokens;
      }
    }
    bench.run();
    EXPECT_EQ(bench.num_answered, 10 * kB);
  }
}

// Somebody else takes pages between the plan and its beginning.
TEST(Scheduler, ABeginningThatFindsTooFewPagesChangesNothing) {
  for (int num_left = 0; num_left <= 8; ++num_left) {
    Bench bench(12);
    bench.submit(text(3 * kB));
    bench.run();
    const RequestId id = bench.submit(text(11 * kB), 1);  // 3 pages are cached, 8 are to be taken
    const StepPlan plan = bench.scheduler.plan(kB);
    ASSERT_EQ(plan.admitted.at(0).cached_tokens, 3 * kB);
    std::vector<PageId> stolen;
    while (bench.pool.num_free() > num_left) stolen.push_back(*bench.pool.take());
    EXPECT_EQ(bench.scheduler.begin(plan).has_value(), num_left == 8);
    if (num_left < 8) {
      EXPECT_EQ(bench.pool.num_free(), num_left);
      EXPECT_EQ(bench.cache.num_filed(), 3);
      EXPECT_EQ(bench.cache.num_evictable(), 3);
      EXPECT_EQ(bench.scheduler.num_waiting(), 1);
      EXPECT_TRUE(bench.scheduler.find(id)->pages.empty());
    } else {
      bench.scheduler.commit(plan, std::vector<StepResult>(1));
    }
    for (const PageId page : stolen) bench.pool.give_back(page);
    bench.run();
    EXPECT_EQ(bench.num_live(), 0);
  }
}

TEST(Scheduler, OneRequestThatNeedsTheWholePoolGetsAllCachedPages) {
  Bench bench(16);
  for (int i = 0; i < 20; ++i) bench.submit(text(300, i * 1000), 10);
  bench.run();
  EXPECT_EQ(bench.num_live(), 0);
  EXPECT_GT(bench.cache.num_evictable(), 10);
  bench.submit(text(16 * kB - 1, 50000), 1);
  bench.run();
  EXPECT_EQ(bench.num_answered, 201);
}

using SchedulerDeathTest = ::testing::Test;

TEST(SchedulerDeathTest, AnIdIsUsedOnce) {
  Bench bench(4);
  ASSERT_EQ(bench.scheduler.submit({RequestId{7}, text(3), 1, {}, {}}), Admission::kQueued);
  EXPECT_DEATH(bench.scheduler.submit({RequestId{7}, text(3), 1, {}, {}}), "is_new");
}

}  // namespace
}  // namespace winnow
