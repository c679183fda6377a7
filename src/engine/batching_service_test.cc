#include "engine/batching_service.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <random>
#include <semaphore>
#include <stdexcept>

#include "engine/engine.h"
#include "engine/sequence.h"
#include "support/golden.h"
#include "support/recording_listener.h"
#include "support/tiny_model.h"

namespace winnow {
namespace {

using test::random_tokens;
using test::RecordingListener;
using test::tiny_model;

std::unique_ptr<GenerationService> service_with(BatchingOptions options) {
  options.engine.num_threads = 2;
  auto service = create_batching_service(tiny_model(), std::move(options));
  EXPECT_TRUE(service.ok()) << service.error().message;
  return std::move(service).value();
}

// What an engine that runs nothing else answers.
std::vector<TokenId> answer_alone(std::span<const TokenId> prompt, const ServiceRequest& request) {
  EngineOptions options{.num_threads = 1};
  auto engine = Engine::create(tiny_model(), options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  const auto sequence = (*engine)->new_sequence();
  GenerateOptions how{.max_new_tokens = request.max_new_tokens,
                      .sampling = request.sampling,
                      .end_tokens = request.end_tokens,
                      .reuse = PrefixReuse::kExact,
                      .sparse = request.sparse};
  auto generation = (*engine)->generate(*sequence, prompt, how);
  EXPECT_TRUE(generation.ok()) << generation.error().message;
  return generation->tokens;
}

struct Running {
  std::vector<TokenId> prompt;
  std::shared_ptr<RecordingListener> listener;
  RequestId id = {};
};

Running start(GenerationService& service, ServiceRequest request) {
  Running running{.prompt = request.prompt, .listener = std::make_shared<RecordingListener>()};
  auto id = service.submit(std::move(request), running.listener);
  EXPECT_TRUE(id.ok()) << id.error().message;
  if (id.ok()) running.id = *id;
  return running;
}

// The last step's news come before the counts that follow it.
ServiceStatus wait_until_idle(const GenerationService& service) {
  ServiceStatus status = service.status();
  while (status.num_running > 0 || status.num_waiting > 0 || status.pages.live > 0) {
    std::this_thread::yield();
    status = service.status();
  }
  return status;
}

// A point that the engine reaches and passes only when the test lets it.
class Gate {
 public:
  void reach() {
    if (passed_) return;
    reached_.set_value();
    opened_.get_future().wait();
    passed_ = true;
  }
  void wait_until_reached() { reached_.get_future().wait(); }
  void open() { opened_.set_value(); }

 private:
  std::promise<void> reached_;
  std::promise<void> opened_;
  bool passed_ = false;
};

TEST(BatchingService, AnswersAreThoseOfAnEngineThatRunsNothingElse) {
  std::mt19937 random(7);
  const std::vector<TokenId> shared = random_tokens(random, 300);
  for (const int chunk : {128, 512}) {
    const auto service = service_with({.engine = {.chunk_tokens = chunk, .context_tokens = 512}});
    std::vector<Running> runs;
    for (int i = 0; i < 40; ++i) {
      ServiceRequest request{.max_new_tokens = 1 + static_cast<int64_t>(random() % 20)};
      if (i % 2 == 0) {
        request.prompt.assign(shared.begin(), shared.begin() + static_cast<int>(random() % 300));
      }
      const auto tail = random_tokens(random, 1 + static_cast<int64_t>(random() % 200));
      request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
      runs.push_back(start(*service, std::move(request)));
    }
    for (Running& run : runs) {
      const RequestEnd end = run.listener->wait_for_end();
      ASSERT_FALSE(end.error) << end.error->message;
      EXPECT_EQ(end.finish, FinishReason::kMaxTokens);
      const auto count = static_cast<int64_t>(run.listener->tokens().size());
      EXPECT_EQ(end.generated_tokens, count);
      EXPECT_EQ(run.listener->ids(), answer_alone(run.prompt, {.max_new_tokens = count}));
    }
    EXPECT_EQ(wait_until_idle(*service).pages.live, 0);
  }
}

TEST(BatchingService, ASeedGivesTheSameTokensInAnyCompany) {
  std::mt19937 random(3);
  const std::vector<TokenId> prompt = random_tokens(random, 50);
  const auto service = service_with({.engine = {.context_tokens = 512}});
  const auto seeded = [&](uint64_t seed) {
    return ServiceRequest{
        .prompt = prompt, .max_new_tokens = 32, .sampling = {.temperature = 0.8F, .seed = seed}};
  };
  const std::vector<TokenId> alone = answer_alone(prompt, seeded(42));
  std::vector<Running> runs;
  for (const uint64_t seed : {42, 7, 42, 42, 9}) runs.push_back(start(*service, seeded(seed)));
  for (Running& run : runs) run.listener->wait_for_end();
  for (const size_t i : {0, 2, 3}) EXPECT_EQ(runs[i].listener->ids(), alone);
  EXPECT_NE(runs[1].listener->ids(), alone);
}

TEST(BatchingService, ARepeatedPromptComesFromTheCacheAndIsAnsweredAlike) {
  std::mt19937 random(5);
  const auto service = service_with({.engine = {.context_tokens = 512}});
  for (const int64_t length : {1, 128, 256, 257}) {
    const std::vector<TokenId> prompt = random_tokens(random, length);
    const auto ask = [&] { return start(*service, {.prompt = prompt, .max_new_tokens = 20}); };
    Running first = ask();
    EXPECT_EQ(first.listener->wait_for_end().cached_tokens, 0);
    Running second = ask();
    EXPECT_EQ(second.listener->wait_for_end().cached_tokens, length - 1);
    EXPECT_EQ(second.listener->ids(), first.listener->ids());
    EXPECT_EQ(first.listener->ids(), answer_alone(prompt, {.max_new_tokens = 20}));
  }
}

TEST(BatchingService, PrefixesAreNotSharedBetweenScopes) {
  std::mt19937 random(5);
  const std::vector<TokenId> prompt = random_tokens(random, 300);
  const auto service = service_with({.engine = {.context_tokens = 512}});
  const auto cached = [&](const std::string& scope) {
    return start(*service, {.prompt = prompt, .max_new_tokens = 1, .cache_scope = scope})
        .listener->wait_for_end()
        .cached_tokens;
  };
  EXPECT_EQ(cached("a"), 0);
  EXPECT_EQ(cached("b"), 0);
  EXPECT_EQ(cached("a"), 299);
}

// Dense and sparse prompts, with tails that begin at different places, and pages from the cache:
// each like its own fresh run.
TEST(BatchingService, SparsePromptsShareWhatAFreshRunWouldFillAlike) {
  std::mt19937 random(11);
  const std::vector<TokenId> shared = random_tokens(random, 400);
  const SparseRule rule{.dense_tokens = 128, .tau = 0.02F};
  const SparseRule v2{.kind = SparseRuleKind::kV2, .dense_tokens = 128, .dense_layers = 0};
  const auto service = service_with({.engine = {.chunk_tokens = 128, .context_tokens = 512}});
  int64_t cached = 0;
  for (int round = 0; round < 24; ++round) {
    ServiceRequest request{.max_new_tokens = 8};
    request.prompt.assign(shared.begin(), shared.begin() + 130 + static_cast<int>(random() % 250));
    const auto tail = random_tokens(random, 1 + static_cast<int64_t>(random() % 120));
    request.prompt.insert(request.prompt.end(), tail.begin(), tail.end());
    if (round % 3 != 0) request.sparse = round % 3 == 1 ? rule : v2;
    const auto expected = answer_alone(
        request.prompt, {.max_new_tokens = request.max_new_tokens, .sparse = request.sparse});
    Running run = start(*service, std::move(request));
    cached += run.listener->wait_for_end().cached_tokens;
    EXPECT_EQ(run.listener->ids(), expected) << "round " << round;
  }
  EXPECT_GT(cached, 0);
}

// Dense, with sparse prompts and answers, and with sparse answers alone: side by side, their
// prompts beginning alike.
std::vector<std::optional<SparseRule>> answer_rules() {
  const SparseRule both{
      .decode = true, .dense_tokens = 128, .tail_tokens = 64, .tau = 0.3F, .decode_tau = 0.3F};
  SparseRule answers = both;
  answers.prompt = false;
  return {both, std::nullopt, answers};
}

TEST(BatchingService, SparseAnswersAreThoseOfAnEngineThatRunsNothingElse) {
  std::mt19937 random(17);
  const std::vector<TokenId> shared = random_tokens(random, 300);
  const auto service = service_with({.engine = {.chunk_tokens = 128, .context_tokens = 512}});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<Running, std::optional<SparseRule>>> runs;
    for (const int prompt_tokens : {90, 200, 300}) {
      for (const auto& rule : answer_rules()) {
        const std::vector<TokenId> prompt(shared.begin(), shared.begin() + prompt_tokens);
        runs.emplace_back(
            start(*service, {.prompt = prompt, .max_new_tokens = 150, .sparse = rule}), rule);
      }
    }
    int64_t cached = 0;
    for (auto& [run, rule] : runs) {
      const RequestEnd end = run.listener->wait_for_end();
      cached += end.cached_tokens;
      EXPECT_EQ(end.answer_attention.has_selection(), rule.has_value() && run.prompt.size() > 90);
      EXPECT_EQ(run.listener->ids(),
                answer_alone(run.prompt, {.max_new_tokens = 150, .sparse = rule}));
    }
    EXPECT_TRUE(round == 0 || cached > 0);
  }
}

TEST(BatchingService, AnswersSurviveHavingTheirPagesTaken) {
  for (const int max_rerun_tokens : {1, 16}) {
    std::mt19937 random(13);
    BatchingOptions options{.engine = {.context_tokens = 512},
                            .kv_tokens = 8 * 128,
                            .limits = {.max_rerun_tokens = max_rerun_tokens}};
    const auto service = service_with(std::move(options));
    const std::vector<std::optional<SparseRule>> rules = answer_rules();
    std::vector<Running> runs;
    for (size_t i = 0; i < 6; ++i) {
      runs.push_back(start(*service, {.prompt = random_tokens(random, 100 + 20 * i),
                                      .max_new_tokens = 300,
                                      .sparse = rules[i % rules.size()]}));
    }
    int32_t preemptions = 0;
    for (size_t i = 0; i < 6; ++i) {
      preemptions += runs[i].listener->wait_for_end().num_preemptions;
      EXPECT_EQ(
          runs[i].listener->ids(),
          answer_alone(runs[i].prompt, {.max_new_tokens = 300, .sparse = rules[i % rules.size()]}));
    }
    EXPECT_GT(preemptions, 0);
  }
}

TEST(BatchingService, CancelledRequestsEndOnceAndLeaveNothingBehind) {
  std::mt19937 random(17);
  const auto service = service_with({.engine = {.chunk_tokens = 128, .context_tokens = 512}});
  const std::vector<TokenId> prompt = random_tokens(random, 60);
  Gate before_any;
  const auto bystander = std::make_shared<RecordingListener>([&](const ScoredToken&) {
    before_any.reach();
    return true;
  });
  ASSERT_TRUE(service->submit({.prompt = prompt, .max_new_tokens = 200}, bystander).ok());
  const auto cancel_at = [&](const std::shared_ptr<RecordingListener>& listener, Gate& gate) {
    const auto id =
        service->submit({.prompt = random_tokens(random, 450), .max_new_tokens = 60}, listener);
    ASSERT_TRUE(id.ok());
    gate.wait_until_reached();
    service->cancel(*id);
    gate.open();
    const RequestEnd end = listener->wait_for_end();
    EXPECT_EQ(end.finish, FinishReason::kCancelled);
    EXPECT_LE(end.generated_tokens, 1);
    service->cancel(*id);
    EXPECT_EQ(listener->num_ends(), 1);
  };
  cancel_at(std::make_shared<RecordingListener>(), before_any);
  Gate after_chunk;
  cancel_at(std::make_shared<RecordingListener>(std::function<bool(const ScoredToken&)>(),
                                                [&] { after_chunk.reach(); }),
            after_chunk);
  Gate after_token;
  cancel_at(std::make_shared<RecordingListener>([&](const ScoredToken&) {
              after_token.reach();
              return true;
            }),
            after_token);
  EXPECT_EQ(bystander->wait_for_end().finish, FinishReason::kMaxTokens);
  EXPECT_EQ(bystander->ids(), answer_alone(prompt, {.max_new_tokens = 200}));
  const ServiceStatus idle = wait_until_idle(*service);
  EXPECT_EQ(idle.pages.cached + idle.pages.free, idle.pages.total);
  EXPECT_EQ(idle.seconds_in_step, 0);
}

TEST(BatchingService, RequestsAreCountedDuringTheStepThatTakesThem) {
  const auto service =
      service_with({.engine = {.context_tokens = 512}, .limits = {.max_running = 1}});
  std::binary_semaphore in_step(0), go_on(0);
  const auto first = std::make_shared<RecordingListener>([&](const ScoredToken&) {
    in_step.release();
    go_on.acquire();
    return true;
  });
  ASSERT_TRUE(service->submit({.prompt = {1, 2, 3}, .max_new_tokens = 2}, first).ok());
  in_step.acquire();
  ServiceStatus status = service->status();
  EXPECT_EQ(status.num_running, 1);
  EXPECT_EQ(status.num_waiting, 0);
  EXPECT_EQ(status.requests.size(), 1U);
  EXPECT_GT(status.pages.live, 0);
  Running second = start(*service, {.prompt = {4, 5}, .max_new_tokens = 1});
  EXPECT_EQ(service->status().num_waiting, 1);
  go_on.release();
  in_step.acquire();
  status = service->status();
  EXPECT_EQ(status.num_running, 1);
  EXPECT_EQ(status.num_waiting, 1);
  EXPECT_EQ(status.requests.size(), 2U);
  go_on.release();
  second.listener->wait_for_end();
  wait_until_idle(*service);
}

TEST(BatchingService, AnswersEndAtEndTokensAtTheContextAndWhenTheListenerHasEnough) {
  std::mt19937 random(19);
  const std::vector<TokenId> prompt = random_tokens(random, 100);
  const std::vector<TokenId> free_run = answer_alone(prompt, {.max_new_tokens = 8});
  const auto service = service_with({.engine = {.context_tokens = 128}});
  {
    Running run = start(*service, {.prompt = prompt, .end_tokens = {-5, free_run[4]}});
    const RequestEnd end = run.listener->wait_for_end();
    EXPECT_EQ(end.finish, FinishReason::kEndToken);
    EXPECT_EQ(end.end_token, free_run[4]);
    const auto first = std::find(free_run.begin(), free_run.end(), free_run[4]);
    EXPECT_EQ(run.listener->ids(), std::vector(free_run.begin(), first));
  }
  {
    Running run =
        start(*service, {.prompt = prompt, .min_new_tokens = 12, .end_tokens = {free_run[4]}});
    run.listener->wait_for_end();
    EXPECT_GE(run.listener->ids().size(), 12U);
  }
  {
    Running run = start(*service, {.prompt = prompt});
    EXPECT_EQ(run.listener->wait_for_end().finish, FinishReason::kContextFull);
    EXPECT_EQ(run.listener->ids().size(), 28U);
  }
  {
    const auto stopper =
        std::make_shared<RecordingListener>([](const ScoredToken&) { return false; });
    ASSERT_TRUE(service->submit({.prompt = prompt}, stopper).ok());
    EXPECT_EQ(stopper->wait_for_end().finish, FinishReason::kStopped);
    EXPECT_EQ(stopper->ids().size(), 1U);
  }
  {
    Running run = start(*service, {.prompt = prompt, .max_new_tokens = 0});
    EXPECT_EQ(run.listener->wait_for_end().finish, FinishReason::kMaxTokens);
    EXPECT_TRUE(run.listener->ids().empty());
  }
}

TEST(BatchingService, ScoresOfAPromptAreThoseOfTheEngine) {
  std::mt19937 random(23);
  const std::vector<TokenId> prompt = random_tokens(random, 200);
  const auto service = service_with({.engine = {.chunk_tokens = 128, .context_tokens = 512}});
  Running run = start(*service, {.prompt = prompt,
                                 .max_new_tokens = 1,
                                 .score_tokens = true,
                                 .num_top_logprobs = 1,
                                 .score_prompt = true,
                                 .num_prompt_top_logprobs = 3});
  run.listener->wait_for_end();
  const std::vector<ScoredToken>& scores = run.listener->prompt_scores();
  ASSERT_EQ(scores.size(), prompt.size());
  auto engine = Engine::create(tiny_model(), {.num_threads = 1, .context_tokens = 512});
  ASSERT_TRUE(engine.ok());
  auto expected = (*engine)->score(prompt, std::ssize(prompt), {});
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(scores[0].token, prompt[0]);
  EXPECT_TRUE(scores[0].top.empty());
  for (size_t i = 1; i < prompt.size(); ++i) {
    EXPECT_EQ(scores[i].token, prompt[i]);
    EXPECT_EQ(scores[i].logprob, expected->target_logprob[i - 1]);
    ASSERT_EQ(scores[i].top.size(), 3U);
    EXPECT_EQ(scores[i].top[0].token, expected->top1[i - 1]);
    EXPECT_GE(scores[i].top[0].logprob, scores[i].logprob);
    EXPECT_EQ(scores[i].rank == 1, scores[i].token == scores[i].top[0].token);
  }
  const ScoredToken& answer = run.listener->tokens().at(0);
  EXPECT_EQ(answer.token, expected->top1.back());
  EXPECT_EQ(answer.logprob, answer.top[0].logprob);
}

TEST(BatchingService, RefusesWhatItCannotRun) {
  BatchingOptions options{.engine = {.context_tokens = 256}};
  options.limits = {.max_running = 1, .max_waiting = 1};
  const auto service = service_with(std::move(options));
  const auto code = [&](ServiceRequest request) {
    const auto listener = std::make_shared<RecordingListener>();
    const Result<RequestId> id = service->submit(std::move(request), listener);
    EXPECT_FALSE(id.ok());
    return id.ok() ? ErrorCode::kIo : id.error().code;
  };
  EXPECT_EQ(code({}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {-1}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {tiny_model()->config().vocab_size}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = {1}, .sampling = {.top_p = 2}}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({.prompt = std::vector<TokenId>(256, 1)}), ErrorCode::kContextExceeded);
  Gate while_full;
  const auto first = std::make_shared<RecordingListener>([&](const ScoredToken&) {
    while_full.reach();
    return true;
  });
  ASSERT_TRUE(service->submit({.prompt = {1, 2}, .max_new_tokens = 200}, first).ok());
  Running second = start(*service, {.prompt = {1, 2}, .max_new_tokens = 200});
  EXPECT_EQ(code({.prompt = {1}}), ErrorCode::kOverloaded);
  service->drain();
  EXPECT_EQ(code({.prompt = {1}}), ErrorCode::kShuttingDown);
  while_full.open();
  EXPECT_EQ(first->wait_for_end().finish, FinishReason::kMaxTokens);
  EXPECT_EQ(second.listener->wait_for_end().finish, FinishReason::kMaxTokens);
}

TEST(BatchingService, AnEngineThatFailsTellsEveryoneAndTakesNoMore) {
  const auto service = service_with({.engine = {.context_tokens = 256}});
  Gate with_both;
  const auto bystander = std::make_shared<RecordingListener>([&](const ScoredToken&) {
    with_both.reach();
    return true;
  });
  ASSERT_TRUE(service->submit({.prompt = {1, 2, 3}, .max_new_tokens = 250}, bystander).ok());
  with_both.wait_until_reached();
  const auto thrower = std::make_shared<RecordingListener>(
      [](const ScoredToken&) -> bool { throw std::runtime_error("hook"); });
  ASSERT_TRUE(service->submit({.prompt = {1, 2}}, thrower).ok());
  with_both.open();
  EXPECT_TRUE(thrower->wait_for_end().error);
  EXPECT_TRUE(bystander->wait_for_end().error);
  EXPECT_TRUE(service->status().failed);
  EXPECT_FALSE(service->submit({.prompt = {1}}, thrower).ok());
}

TEST(BatchingService, ItsEndEndsEveryRequest) {
  BatchingOptions options{.engine = {.context_tokens = 512}};
  options.limits.max_running = 1;
  auto service = service_with(std::move(options));
  std::vector<Running> runs;
  for (int i = 0; i < 100; ++i) {
    runs.push_back(start(*service, {.prompt = {1, 2, 3}, .max_new_tokens = 500}));
  }
  runs.front().listener->wait_for_tokens(1);
  service.reset();
  for (Running& run : runs) {
    run.listener->wait_for_end();
    EXPECT_EQ(run.listener->num_ends(), 1);
  }
  EXPECT_EQ(runs.back().listener->wait_for_end().finish, FinishReason::kCancelled);
}

}  // namespace
}  // namespace winnow
