#include "engine/saved_prefixes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <semaphore>

#include "engine/batching_service.h"
#include "engine/kv_identity.h"
#include "support/golden.h"
#include "support/recording_listener.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace winnow {
namespace {

using test::random_tokens;
using test::RecordingListener;
using test::tiny_model;

const SparseRule kWinnow{.dense_tokens = 128, .tau = 0.02F};
const SparseRule kSparseAnswers{
    .prompt = false, .decode = true, .dense_tokens = 128, .decode_tau = 0.3F};
const SparseRule kV2{.kind = SparseRuleKind::kV2, .dense_tokens = 128, .dense_layers = 0};

EngineOptions engine_options() {
  return {
      .num_threads = 2, .chunk_tokens = 128, .context_tokens = 512, .kernels = *select_kernels("")};
}

std::vector<TokenId> joined(std::span<const TokenId> a, std::span<const TokenId> b) {
  std::vector<TokenId> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

// A service and its folder: two of them, one after the other, are a server that is started again.
struct Process {
  explicit Process(const std::string& path, int64_t kv_tokens = 0, int64_t limit_bytes = 1 << 30) {
    auto opened = open_prefix_folder(
        {.path = path,
         .limit_bytes = limit_bytes,
         .on_useless_file = [this](const Error& error) { useless.push_back(error.message); }},
        *tiny_model(), engine_options());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    folder = std::move(opened).value();
    BatchingOptions options{.engine = engine_options(),
                            .kv_tokens = kv_tokens,
                            .folder = folder.get(),
                            .saved_bytes_at_once = 1};  // a page at a time
    auto made = create_batching_service(tiny_model(), std::move(options));
    EXPECT_TRUE(made.ok()) << made.error().message;
    service = std::move(made).value();
  }

  std::shared_ptr<RecordingListener> start(ServiceRequest request) {
    auto listener = std::make_shared<RecordingListener>();
    const auto id = service->submit(std::move(request), listener);
    EXPECT_TRUE(id.ok()) << id.error().message;
    return listener;
  }
  RequestEnd save(std::span<const TokenId> prompt, std::optional<SparseRule> rule = {},
                  std::string tenant = "a", std::string name = "doc") {
    return start({.prompt = {prompt.begin(), prompt.end()},
                  .sparse = rule,
                  .cache_scope = std::move(tenant),
                  .save_as = PrefixName{"me", std::move(name)}})
        ->wait_for_end();
  }

  std::vector<std::string> useless;
  std::unique_ptr<PrefixFolder> folder;
  std::unique_ptr<GenerationService> service;
};

struct Answer {
  std::vector<TokenId> ids = {};
  std::vector<float> logprobs = {};
  int64_t cached_tokens = 0;
};

ServiceRequest question(std::span<const TokenId> prompt, std::optional<SparseRule> rule = {},
                        std::string tenant = "a") {
  return {.prompt = {prompt.begin(), prompt.end()},
          .max_new_tokens = 12,
          .sparse = rule,
          .cache_scope = std::move(tenant),
          .score_tokens = true};
}

Answer answer_of(RecordingListener& listener) {
  const RequestEnd end = listener.wait_for_end();
  EXPECT_FALSE(end.error) << end.error->message;
  Answer answer{.ids = listener.ids(), .cached_tokens = end.cached_tokens};
  for (const ScoredToken& token : listener.tokens()) answer.logprobs.push_back(token.logprob);
  return answer;
}

// What a service without a folder says.
Answer cold_answer(std::span<const TokenId> prompt, std::optional<SparseRule> rule = {}) {
  auto service = create_batching_service(tiny_model(), {.engine = engine_options()});
  EXPECT_TRUE(service.ok());
  const auto listener = std::make_shared<RecordingListener>();
  EXPECT_TRUE((*service)->submit(question(prompt, rule), listener).ok());
  return answer_of(*listener);
}

void expect_same(const Answer& found, const Answer& expected) {
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.logprobs, expected.logprobs);
}

TEST(SavedPrefixes, AnAnswerAfterARestartIsThatOfAColdRunBitForBit) {
  std::mt19937 random(3);
  const std::optional<SparseRule> rules[] = {std::nullopt, kWinnow, kSparseAnswers, kV2};
  for (const auto& rule : rules) {
    test::TempFolder temp;
    const std::vector<TokenId> document = random_tokens(random, 400);
    {
      Process first(temp.path("kv"));
      const RequestEnd end = first.save(document, rule);
      ASSERT_FALSE(end.error) << end.error->message;
      ASSERT_TRUE(end.saved);
      EXPECT_EQ(end.saved->num_tokens, 384);
      EXPECT_EQ(end.saved->sparse, rule.has_value());
      EXPECT_EQ(end.finish, FinishReason::kMaxTokens);
    }
    Process second(temp.path("kv"));
    for (const int64_t more : {0, 1, 60, 100}) {
      const auto prompt = joined(document, random_tokens(random, more));
      const Answer answer = answer_of(*second.start(question(prompt, rule)));
      // Of a sparse document the dense tail is not what a longer prompt has there.
      EXPECT_GE(answer.cached_tokens, rule ? 256 : 384);
      expect_same(answer, cold_answer(prompt, rule));
    }
    EXPECT_GE(second.service->status().prefix_loaded_tokens, rule ? 256 : 384);
    EXPECT_TRUE(second.useless.empty());
  }
}

TEST(SavedPrefixes, AnotherBeginningAnotherRuleOrAnotherTenantGetsNothing) {
  std::mt19937 random(5);
  test::TempFolder temp;
  const std::vector<TokenId> document = random_tokens(random, 400);
  Process(temp.path("kv")).save(document, kWinnow);
  Process process(temp.path("kv"));
  std::vector<TokenId> other = document;
  other[127] ^= 1;
  const auto cached = [&](std::span<const TokenId> prompt, std::optional<SparseRule> rule,
                          const std::string& tenant) {
    const Answer answer = answer_of(*process.start(question(prompt, rule, tenant)));
    expect_same(answer, cold_answer(prompt, rule));
    return answer.cached_tokens;
  };
  EXPECT_EQ(cached(document, kWinnow, "b"), 0);
  EXPECT_EQ(cached(document, kV2, "a"), 0);
  EXPECT_EQ(cached(document, kSparseAnswers, "a"), 0);
  EXPECT_EQ(cached(document, {}, "a"), 0);
  EXPECT_EQ(cached(other, kWinnow, "a"), 0);
  EXPECT_EQ(process.service->status().prefix_loaded_tokens, 0);
  EXPECT_GT(cached(document, kWinnow, "a"), 0);
  EXPECT_GT(process.service->status().prefix_loaded_tokens, 0);
}

TEST(SavedPrefixes, ARequestThatReadsNoCacheReadsNoFileEither) {
  std::mt19937 random(6);
  test::TempFolder temp;
  const std::vector<TokenId> document = random_tokens(random, 300);
  Process(temp.path("kv")).save(document);
  Process process(temp.path("kv"));
  ServiceRequest request = question(document);
  request.read_cache = false;
  EXPECT_EQ(answer_of(*process.start(std::move(request))).cached_tokens, 0);
  EXPECT_EQ(process.service->status().prefix_loaded_tokens, 0);
}

TEST(SavedPrefixes, ManyWhoAskAtOnceLoadAPrefixOnce) {
  std::mt19937 random(7);
  test::TempFolder temp;
  const std::vector<TokenId> document = random_tokens(random, 300);
  Process(temp.path("kv")).save(document);
  Process process(temp.path("kv"), 4096);
  std::vector<std::vector<TokenId>> prompts;
  std::vector<std::shared_ptr<RecordingListener>> listeners;
  for (int i = 0; i < 12; ++i) {
    prompts.push_back(joined(document, random_tokens(random, 5 + i)));
    listeners.push_back(process.start(question(prompts.back())));
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Answer answer = answer_of(*listeners[i]);
    EXPECT_GE(answer.cached_tokens, 256);  // and what is copied from those before
    expect_same(answer, cold_answer(prompts[i]));
  }
  EXPECT_EQ(process.service->status().prefix_loaded_tokens, 256);
}

// Six pages: what is loaded has to give way to those who run, and the other way round.
TEST(SavedPrefixes, AnswersAreTheSameWherePagesAreScarce) {
  std::mt19937 random(9);
  test::TempFolder temp;
  std::vector<std::vector<TokenId>> documents;
  {
    Process first(temp.path("kv"));
    for (int i = 0; i < 4; ++i) {
      documents.push_back(random_tokens(random, 260 + 60 * i));
      const RequestEnd end = first.save(documents.back(), {}, "a", "doc" + std::to_string(i));
      EXPECT_FALSE(end.error) << end.error->message;
    }
  }
  Process process(temp.path("kv"), 6 * kPageTokens);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<TokenId>> prompts;
    std::vector<std::shared_ptr<RecordingListener>> listeners;
    for (const auto& document : documents) {
      prompts.push_back(
          joined(document, random_tokens(random, static_cast<int64_t>(random() % 40))));
      listeners.push_back(process.start(question(prompts.back())));
    }
    for (size_t i = 0; i < prompts.size(); ++i) {
      expect_same(answer_of(*listeners[i]), cold_answer(prompts[i]));
    }
  }
  EXPECT_GT(process.service->status().prefix_loaded_tokens, 0);
}

TEST(SavedPrefixes, ADamagedPageIsComputedAgainAndToldOnce) {
  std::mt19937 random(11);
  test::TempFolder temp;
  const std::vector<TokenId> document = random_tokens(random, 400);
  RequestEnd end;
  {
    Process first(temp.path("kv"));
    end = first.save(document);
    const auto prefix = first.folder->find(tenant_hash("a"), "").at(0);
    std::fstream file(prefix->path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(prefix->header.pages_offset() + prefix->header.page_bytes + 77);
    file.put('\x55');
  }
  Process process(temp.path("kv"));
  EXPECT_TRUE(process.useless.empty());
  for (int i = 0; i < 2; ++i) {
    const auto prompt = joined(document, random_tokens(random, 9));
    const Answer answer = answer_of(*process.start(question(prompt)));
    expect_same(answer, cold_answer(prompt));
    EXPECT_EQ(answer.cached_tokens, i == 0 ? 128 : 400);
  }
  ASSERT_EQ(process.useless.size(), 1U);
  EXPECT_NE(process.useless[0].find("checksum of page 1"), std::string::npos);
  EXPECT_EQ(process.service->status().prefix_loaded_tokens, 128);
}

TEST(SavedPrefixes, AFullFolderIsTheCallersErrorAlone) {
  std::mt19937 random(13);
  test::TempFolder temp;
  Process process(temp.path("kv"), 0, 1);
  const std::vector<TokenId> document = random_tokens(random, 300);
  const RequestEnd end = process.save(document);
  ASSERT_TRUE(end.error);
  EXPECT_EQ(end.error->code, ErrorCode::kStorageFull);
  expect_same(answer_of(*process.start(question(document))), cold_answer(document));
}

TEST(SavedPrefixes, WhatCannotBeSavedIsRefusedBeforeItIsRun) {
  test::TempFolder temp;
  Process process(temp.path("kv"));
  const auto refused = [](GenerationService& service, int64_t num_tokens, const std::string& name) {
    ServiceRequest request{.prompt = std::vector<TokenId>(static_cast<size_t>(num_tokens), 1),
                           .save_as = PrefixName{"me", name}};
    const auto id = service.submit(std::move(request), std::make_shared<RecordingListener>());
    EXPECT_FALSE(id.ok());
    return id.ok() ? "" : id.error().message;
  };
  EXPECT_EQ(refused(*process.service, 127, "doc"),
            "prompt: expected at least 128 tokens, since whole pages are saved, found 127");
  EXPECT_NE(refused(*process.service, 200, "../doc").find("name: expected"), std::string::npos);
  auto without = create_batching_service(tiny_model(), {.engine = engine_options()});
  EXPECT_NE(refused(**without, 200, "doc").find("--kv-store"), std::string::npos);
}

TEST(SavedPrefixes, ACancelledSaveLeavesNothing) {
  std::mt19937 random(15);
  test::TempFolder temp;
  Process process(temp.path("kv"));
  std::binary_semaphore in_prompt(0), go_on(0);
  const auto listener = std::make_shared<RecordingListener>(
      std::function<bool(const ScoredToken&)>(), [&, first = true]() mutable {
        if (!std::exchange(first, false)) return;
        in_prompt.release();
        go_on.acquire();
      });
  const auto id = process.service->submit(
      {.prompt = random_tokens(random, 400), .save_as = PrefixName{"me", "doc"}}, listener);
  ASSERT_TRUE(id.ok());
  in_prompt.acquire();
  process.service->cancel(*id);
  go_on.release();
  EXPECT_EQ(listener->wait_for_end().finish, FinishReason::kCancelled);
  process.service.reset();
  EXPECT_TRUE(process.folder->list("me").empty());
  EXPECT_TRUE(std::filesystem::is_empty(temp.path("kv")));
}

TEST(SavedPrefixes, TheEndOfTheServiceEndsSavesAndLoads) {
  std::mt19937 random(17);
  test::TempFolder temp;
  const std::vector<TokenId> document = random_tokens(random, 400);
  Process(temp.path("kv")).save(document);
  std::vector<std::shared_ptr<RecordingListener>> listeners;
  {
    Process process(temp.path("kv"), 4096);
    for (int i = 0; i < 8; ++i) {
      listeners.push_back(process.start(question(joined(document, random_tokens(random, i)))));
      listeners.push_back(process.start(
          {.prompt = random_tokens(random, 300), .save_as = PrefixName{"me", std::to_string(i)}}));
    }
    listeners.front()->wait_for_end();
  }
  for (const auto& listener : listeners) {
    listener->wait_for_end();
    EXPECT_EQ(listener->num_ends(), 1);
  }
}

TEST(SavedPrefixes, AModelOfOtherBytesIsAnotherIdentity) {
  const auto identity = [](const std::string& file, EngineOptions options) {
    auto model = Model::load(test::golden_path(file));
    EXPECT_TRUE(model.ok());
    const auto text = kv_identity(**model, options);
    EXPECT_TRUE(text.ok());
    EXPECT_LE(text->size(), kMaxPrefixTextBytes);
    return *text;
  };
  const std::string one = identity("tiny/llama-untied.gguf", engine_options());
  EXPECT_EQ(one, identity("tiny/llama-untied.gguf", engine_options()));
  EXPECT_NE(one, identity("tiny/qwen3-qk-norm.gguf", engine_options()));
  EngineOptions f16 = engine_options();
  f16.kv_dtype = KvDType::kF16;
  EXPECT_NE(one, identity("tiny/llama-untied.gguf", f16));
  EngineOptions scalar = engine_options();
  scalar.kernels = &kernel_table(Isa::kScalar);
  EXPECT_NE(one, identity("tiny/llama-untied.gguf", scalar));
}

}  // namespace
}  // namespace winnow
