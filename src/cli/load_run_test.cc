#include "cli/load_run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cli/isolation_run.h"
#include "cli/latency_figures.h"
#include "cli/served_model.h"
#include "support/calls_to.h"
#include "support/scripted_server.h"
#include "support/test_server.h"

namespace winnow {
namespace {

using test::calls_to;
using test::ScriptedServer;
using test::TestServer;

LoadPlan plan_of(const ServedModel& model, const char* lengths) {
  return {.model = model.name,
          .rate = {},
          .concurrency = 2,
          .num_requests = 6,
          .seconds = {},
          .lengths = LengthMix::parse(lengths, 1 << 20, "lengths").value(),
          .max_tokens = 5,
          .seed = 1};
}

void ignore(int64_t /*num_ended*/) {}

TEST(LoadRun, ClosedLoopKeepsItsConcurrencyAndCountsTokens) {
  TestServer server;
  const auto calls = calls_to(server.port());
  const auto model = ask_served_model(*calls, {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->name, "tiny");
  EXPECT_EQ(model->context_tokens, 4096);
  ASSERT_FALSE(model->text_ids.empty());
  BenchPrompts prompts(model->text_ids, 0, 1);
  int64_t last_ended = 0;
  const LoadResult result = run_load(*calls, plan_of(*model, "40,200"), prompts,
                                     [&last_ended](int64_t ended) { last_ended = ended; });
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(last_ended, 6);
  ASSERT_EQ(result.records.size(), 6U);
  for (const RequestRecord& record : result.records) {
    ASSERT_FALSE(record.failure) << record.failure->message;
    EXPECT_EQ(record.prompt_tokens, record.asked_prompt_tokens);
    EXPECT_EQ(record.completion_tokens, 5);
    EXPECT_GE(record.ttft_s(), 0);
    EXPECT_GE(record.e2el_s(), record.ttft_s());
  }
  const LoadFigures figures = load_figures(result.records, {});
  EXPECT_EQ(figures.num_completed, 6);
  EXPECT_EQ(figures.output_tokens, 30);
  EXPECT_LE(figures.peak_concurrency, 2);
}

TEST(LoadRun, OpenLoopDoesNotWaitForAnswers) {
  TestServer server;
  server.service().hold(true);
  const auto calls = calls_to(server.port());
  const auto model = ask_served_model(*calls, {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  BenchPrompts prompts(model->text_ids, 0, 1);
  LoadPlan plan = plan_of(*model, "40");
  plan.rate = 500;
  // Nothing is answered before all have arrived.
  std::thread release([&server] {
    EXPECT_TRUE(server.service().wait_for_requests(6));
    server.service().hold(false);
  });
  const LoadResult result = run_load(*calls, plan, prompts, ignore);
  release.join();
  const LoadFigures figures = load_figures(result.records, {});
  EXPECT_EQ(figures.num_completed, 6);
  EXPECT_EQ(figures.peak_concurrency, 6);
}

TEST(LoadRun, TimeEndsWhatNumbersDoNot) {
  TestServer server;
  const auto calls = calls_to(server.port());
  const auto model = ask_served_model(*calls, {});
  ASSERT_TRUE(model.ok());
  BenchPrompts prompts(model->text_ids, 0, 1);
  LoadPlan plan = plan_of(*model, "40");
  plan.num_requests.reset();
  plan.seconds = 0.05;
  const LoadResult result = run_load(*calls, plan, prompts, ignore);
  EXPECT_GE(result.records.size(), 2U);
  for (const RequestRecord& record : result.records) EXPECT_TRUE(record.ended_s);
}

TEST(LoadRun, RefusalsAreRecordedAndManyInARowEndTheLoop) {
  TestServer server({.keys = {"right"}});
  const auto wrong = calls_to(server.port(), {.api_key = "wrong"});
  const auto refused = ask_served_model(*wrong, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("expected status 200, found 401"), std::string::npos);
  BenchPrompts prompts(std::vector<TokenId>{1, 2, 3}, 0, 1);
  LoadPlan plan = plan_of({.name = "m"}, "8");
  plan.num_requests = 1000;
  const LoadResult result = run_load(*wrong, plan, prompts, ignore);
  EXPECT_GE(std::ssize(result.records), kMaxFailuresInRow);
  EXPECT_LE(std::ssize(result.records), kMaxFailuresInRow + plan.concurrency);
  for (const RequestRecord& record : result.records) EXPECT_EQ(record.failure->kind, "HTTP 401");
  EXPECT_TRUE(ask_served_model(*calls_to(server.port(), {.api_key = "right"}), {}).ok());
}

TEST(LoadRun, ServersWithoutTokenizeGetText) {
  ScriptedServer server([](const std::string& request) {
    if (request.starts_with("GET /v1/models ")) {
      return ScriptedServer::reply(200, R"({"data":[{"id":"other"}]})");
    }
    if (request.starts_with("POST /tokenize ")) return ScriptedServer::reply(404, "no");
    return ScriptedServer::reply(
        200, "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\n");
  });
  const auto calls = calls_to(server.port());
  const auto model = ask_served_model(*calls, {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->name, "other");
  EXPECT_TRUE(model->text_ids.empty());
  BenchPrompts prompts("some words", 0, 1);
  const LoadResult result = run_load(*calls, plan_of(*model, "8"), prompts, ignore);
  EXPECT_EQ(load_figures(result.records, {}).num_completed, 6);
  EXPECT_NE(server.requests().back().find(R"("prompt":"some words some)"), std::string::npos);
}

TEST(LoadRun, WhatIsNoListOfModelsIsAnError) {
  for (const char* body : {"", "[]", "{}", R"({"data":[]})", R"({"data":[{"id":7}]})"}) {
    ScriptedServer server([body](const std::string&) { return ScriptedServer::reply(200, body); });
    const auto model = ask_served_model(*calls_to(server.port()), {});
    ASSERT_FALSE(model.ok()) << body;
    EXPECT_EQ(model.error().message.find("/v1/models: expected a list of models"), 0U);
  }
}

// A server whose streams get a token every millisecond, and a client's view of it.
class SteadyServer {
 public:
  SteadyServer() {
    server_.service().hold(true);
    pacer_ = std::thread([this] {
      std::unique_lock lock(mutex_);
      while (!ended_.wait_for(lock, std::chrono::milliseconds(1), [this] { return over_; })) {
        server_.service().step(1);
      }
    });
  }
  ~SteadyServer() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    pacer_.join();
  }

  IsolationResult run(const IsolationPlan& plan) {
    const auto calls = calls_to(server_.port());
    BenchPrompts prompts(server_.tokenizer().encode("some words that make up a text"), 0, 1);
    return run_isolation(*calls, plan, prompts, [](std::string_view) {});
  }

 private:
  TestServer server_{{.context_tokens = 100000}};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread pacer_;
};

IsolationPlan isolation_plan() {
  return {.model = "tiny",
          .num_streams = 3,
          .stream_lengths = LengthMix::parse("16", 100, "lengths").value(),
          .stream_max_tokens = 90000,
          .long_prompt_tokens = 2000};
}

TEST(IsolationRun, GapsAreToldBeforeAndDuringTheLongPrompt) {
  const IsolationResult result = SteadyServer().run(isolation_plan());
  EXPECT_FALSE(result.interrupted);
  ASSERT_FALSE(result.failure()) << result.failure()->message;
  EXPECT_EQ(result.beside->prompt_tokens, 2000);
  EXPECT_EQ(result.alone->prompt_tokens, 2000);
  EXPECT_GE(std::ssize(result.gaps_before_ms()), 3 * (kTokensBefore - 1));
  EXPECT_GE(std::ssize(result.gaps_during_ms()), 3);
  EXPECT_EQ(result.num_ended_early(), 0);
}

TEST(IsolationRun, StreamsThatEndTooSoonLeaveNothingToCompare) {
  IsolationPlan plan = isolation_plan();
  plan.stream_max_tokens = 4;
  const IsolationResult result = SteadyServer().run(plan);
  EXPECT_FALSE(result.beside);
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->kind, "ended");
}

TEST(IsolationRun, ARefusedLongPromptIsTheFailure) {
  IsolationPlan plan = isolation_plan();
  plan.long_prompt_tokens = 100001;
  const IsolationResult result = SteadyServer().run(plan);
  ASSERT_TRUE(result.failure());
  EXPECT_EQ(result.failure()->kind, "HTTP 400");
  EXPECT_FALSE(result.alone);
}

TEST(IsolationRun, GapsBelongToTheTimesTheyOverlap) {
  IsolationResult result;
  result.streams = {{.chunk_s = {0.5, 1, 2, 2.5, 4, 7, 8}}, {.chunk_s = {1, 2.75, 9}}};
  result.steady_s = 1;
  result.beside = RequestRecord{.sent_s = 3, .chunk_s = {6}};
  EXPECT_EQ(result.gaps_before_ms(), (std::vector<double>{1000, 500, 1750}));
  EXPECT_EQ(result.gaps_during_ms(), (std::vector<double>{1500, 3000, 6250}));
  // Cut short by Ctrl+C.
  result.beside = RequestRecord{.sent_s = 3, .ended_s = 3.5};
  EXPECT_EQ(result.gaps_during_ms(), (std::vector<double>{1500, 6250}));
}

}  // namespace
}  // namespace winnow
