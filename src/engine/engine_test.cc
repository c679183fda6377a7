#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>

#include "engine/kv_capacity.h"
#include "engine/sequence.h"
#include "support/golden.h"
#include "support/slow_build.h"
#include "support/tiny_model.h"

namespace winnow {
namespace {

using test::tiny_model;

class EngineTest : public testing::Test {
 protected:
  static std::unique_ptr<Engine> engine_with(EngineOptions options) {
    options.num_threads = 2;
    auto engine = Engine::create(tiny_model(), options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return std::move(engine).value();
  }
  static std::vector<TokenId> prompt_of(size_t count) {
    std::vector<TokenId> prompt(count);
    for (size_t i = 0; i < count; ++i) prompt[i] = static_cast<TokenId>((i * 37 + 11) % 250);
    return prompt;
  }
  static Generation answer(Engine& engine, Sequence& sequence, const std::vector<TokenId>& prompt,
                           const GenerateOptions& options) {
    auto generation = engine.generate(sequence, prompt, options);
    EXPECT_TRUE(generation.ok()) << generation.error().message;
    return std::move(generation).value();
  }
};

TEST_F(EngineTest, AnswersWithAsManyTokensAsAskedFor) {
  const auto engine = engine_with({.context_tokens = 256});
  for (const int64_t count : {0, 1, 2, 17}) {
    const auto sequence = engine->new_sequence();
    const Generation generation =
        answer(*engine, *sequence, prompt_of(40), {.max_new_tokens = count});
    EXPECT_EQ(static_cast<int64_t>(generation.tokens.size()), count);
    EXPECT_EQ(generation.finish, FinishReason::kMaxTokens);
  }
}

TEST_F(EngineTest, EndsAtAnyEndTokenAndKeepsItOutOfTheAnswer) {
  const auto engine = engine_with({.context_tokens = 256});
  const std::vector<TokenId> free_run =
      answer(*engine, *engine->new_sequence(), prompt_of(40), {.max_new_tokens = 8}).tokens;
  const TokenId end = free_run.back();
  const auto first = std::find(free_run.begin(), free_run.end(), end);
  const Generation generation = answer(*engine, *engine->new_sequence(), prompt_of(40),
                                       {.max_new_tokens = 8, .end_tokens = {-5, end}});
  EXPECT_EQ(generation.finish, FinishReason::kEndToken);
  EXPECT_EQ(generation.tokens, std::vector<TokenId>(free_run.begin(), first));
}

TEST_F(EngineTest, StopsWhenTheContextIsFull) {
  const auto engine = engine_with({.context_tokens = 60});
  const Generation generation = answer(*engine, *engine->new_sequence(), prompt_of(50), {});
  EXPECT_EQ(generation.finish, FinishReason::kContextFull);
  EXPECT_EQ(generation.tokens.size(), 11U);  // the last one needs no room: nothing follows it
}

TEST_F(EngineTest, APromptThatCannotFitIsRefusedWithBothNumbers) {
  const auto engine = engine_with({.context_tokens = 60});
  const auto generation = engine->generate(*engine->new_sequence(), prompt_of(61), {});
  ASSERT_FALSE(generation.ok());
  EXPECT_EQ(generation.error().code, ErrorCode::kContextExceeded);
  EXPECT_NE(generation.error().message.find("60"), std::string::npos);
  EXPECT_NE(generation.error().message.find("61"), std::string::npos);
}

TEST_F(EngineTest, BadPromptsAndOptionsAreErrors) {
  const auto engine = engine_with({.context_tokens = 60});
  const auto sequence = engine->new_sequence();
  EXPECT_FALSE(engine->generate(*sequence, std::vector<TokenId>{}, {}).ok());
  EXPECT_FALSE(engine->generate(*sequence, std::vector<TokenId>{1, -1}, {}).ok());
  EXPECT_FALSE(engine->generate(*sequence, std::vector<TokenId>{1, 1 << 30}, {}).ok());
  EXPECT_FALSE(Engine::create(tiny_model(), {.num_threads = -1}).ok());
  EXPECT_FALSE(Engine::create(tiny_model(), {.chunk_tokens = 0}).ok());
  EXPECT_FALSE(Engine::create(tiny_model(), {.context_tokens = int64_t{1} << 40}).ok());
}

TEST_F(EngineTest, AContinuedConversationReusesItsPrefixAndAnswersAsAFreshOne) {
  const auto engine = engine_with({.context_tokens = 512});
  const auto sequence = engine->new_sequence();
  std::vector<TokenId> prompt = prompt_of(100);
  answer(*engine, *sequence, prompt, {.max_new_tokens = 0});
  const std::vector<TokenId> more = prompt_of(77);
  prompt.insert(prompt.end(), more.begin(), more.end());
  const Generation continued = answer(*engine, *sequence, prompt, {.max_new_tokens = 9});
  EXPECT_EQ(continued.reused_tokens, 100);
  EXPECT_EQ(continued.tokens,
            answer(*engine, *engine->new_sequence(), prompt, {.max_new_tokens = 9}).tokens);
}

TEST_F(EngineTest, ExactReuseTakesNoTokenOfAnEarlierAnswer) {
  const auto engine = engine_with({.context_tokens = 512});
  const auto sequence = engine->new_sequence();
  std::vector<TokenId> prompt = prompt_of(60);
  const Generation first = answer(*engine, *sequence, prompt, {.max_new_tokens = 20});
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  prompt.push_back(7);
  const Generation fresh = answer(*engine, *engine->new_sequence(), prompt, {.max_new_tokens = 9});
  const Generation exact =
      answer(*engine, *sequence, prompt, {.max_new_tokens = 9, .reuse = PrefixReuse::kExact});
  EXPECT_EQ(exact.reused_tokens, 60);
  EXPECT_EQ(exact.tokens, fresh.tokens);
  sequence->truncate(60);
  answer(*engine, *sequence, std::vector<TokenId>(prompt.begin(), prompt.begin() + 60),
         {.max_new_tokens = 20});
  EXPECT_EQ(answer(*engine, *sequence, prompt, {.max_new_tokens = 1}).reused_tokens, 79);
}

TEST_F(EngineTest, RepeatingAPromptRunsItsLastTokenAgain) {
  const auto engine = engine_with({.context_tokens = 512});
  for (const size_t length : {1, 128, 256, 257}) {
    const auto sequence = engine->new_sequence();
    const std::vector<TokenId> prompt = prompt_of(length);
    const Generation first = answer(*engine, *sequence, prompt, {.max_new_tokens = 3});
    const Generation second = answer(*engine, *sequence, prompt, {.max_new_tokens = 3});
    EXPECT_EQ(second.reused_tokens, static_cast<int64_t>(length) - 1);
    EXPECT_EQ(first.tokens, second.tokens);
  }
}

TEST_F(EngineTest, CancellingReturnsWhatThereIs) {
  const auto engine = engine_with({.chunk_tokens = 128, .context_tokens = 512});
  std::atomic<bool> cancel = false;
  GenerateOptions options{.max_new_tokens = 50, .cancel = &cancel};
  options.on_token = [&, count = 0](TokenId) mutable {
    if (++count == 3) cancel = true;
    return true;
  };
  const Generation during_answer = answer(*engine, *engine->new_sequence(), prompt_of(10), options);
  EXPECT_EQ(during_answer.finish, FinishReason::kCancelled);
  EXPECT_EQ(during_answer.tokens.size(), 3U);

  cancel = false;
  options.on_prefill = [&](const PrefillProgress&) { cancel = true; };
  const auto sequence = engine->new_sequence();
  const Generation during_prompt = answer(*engine, *sequence, prompt_of(500), options);
  EXPECT_EQ(during_prompt.finish, FinishReason::kCancelled);
  EXPECT_EQ(sequence->size(), 128);  // the finished chunk serves the next try
}

TEST_F(EngineTest, ProgressCountsEveryChunkUpToTheWholePrompt) {
  const auto engine = engine_with({.chunk_tokens = 100, .context_tokens = 512});
  std::vector<int64_t> done;
  GenerateOptions options{.max_new_tokens = 0};
  options.on_prefill = [&](const PrefillProgress& progress) {
    done.push_back(progress.done);
    EXPECT_EQ(progress.total, 300);
    EXPECT_GE(progress.eta_s, 0);
  };
  answer(*engine, *engine->new_sequence(), prompt_of(300), options);
  EXPECT_EQ(done, (std::vector<int64_t>{128, 256, 300}));
}

TEST_F(EngineTest, PagesComeBackWhenASequenceEnds) {
  const auto engine = engine_with({.context_tokens = 256});
  for (int i = 0; i < 20; ++i) {
    const Generation generation =
        answer(*engine, *engine->new_sequence(), prompt_of(250), {.max_new_tokens = 2});
    EXPECT_EQ(generation.tokens.size(), 2U);
  }
  EXPECT_GT(engine->kv_bytes(), 0);
}

TEST_F(EngineTest, AChunkIsCutToTheMemoryOfAStep) {
  const std::shared_ptr<const Model> model = test::tiny_model();
  const KernelTable& kernels = *select_kernels("").value();
  const auto chunk = [&](int64_t asked, int num_threads) {
    return choose_chunk_tokens(asked, model->config(), kernels,
                               {.context_tokens = 512, .num_threads = num_threads});
  };
  EXPECT_EQ(chunk(1, 1), 128);
  EXPECT_EQ(chunk(500, 1), 512);
  EXPECT_EQ(chunk(8192, 1), 8192);
  const int64_t most = chunk(1 << 20, 1);
  EXPECT_LT(most, 1 << 20);
  const auto bytes = [&](int64_t num_rows) {
    return step_bytes(model->config(), kernels, {num_rows, 512, 1});
  };
  EXPECT_LE(bytes(most), 128 << 20);
  EXPECT_GT(bytes(most + 128), 128 << 20);
  EXPECT_LT(chunk(1 << 20, 64), most);
  EXPECT_EQ(chunk(1 << 20, 100000), 512) << "the usual chunk always fits";
}

TEST_F(EngineTest, ScoringDoesNotDependOnTheChunk) {
  const std::vector<TokenId> ids = prompt_of(300);
  const auto whole = engine_with({.chunk_tokens = 512, .context_tokens = 512})->score(ids, 300, {});
  const auto parts = engine_with({.chunk_tokens = 128, .context_tokens = 512})->score(ids, 300, {});
  ASSERT_TRUE(whole.ok() && parts.ok());
  EXPECT_EQ(whole->target_logprob, parts->target_logprob);
  EXPECT_EQ(whole->top1, parts->top1);
  EXPECT_EQ(whole->target_logprob.size(), 299U);
}

TEST_F(EngineTest, ScoringTheLastTokensGivesTheEndOfScoringAll) {
  const std::vector<TokenId> ids = prompt_of(300);
  const auto engine = engine_with({.chunk_tokens = 128, .context_tokens = 512});
  const auto all = engine->score(ids, 1000, {});
  for (const int64_t count : {2, 44, 45, 172, 299, 300}) {
    const auto last = engine->score(ids, count, {});
    ASSERT_TRUE(last.ok());
    EXPECT_EQ(last->target_logprob, std::vector<float>(all->target_logprob.end() - (count - 1),
                                                       all->target_logprob.end()));
    EXPECT_EQ(last->top1, std::vector<TokenId>(all->top1.end() - count, all->top1.end()));
  }
}

TEST_F(EngineTest, AScoredSequenceServesThePromptThatGoesOn) {
  std::vector<TokenId> ids = prompt_of(300);
  const auto engine = engine_with({.chunk_tokens = 128, .context_tokens = 512, .num_contexts = 2});
  const std::unique_ptr<Sequence> sequence = engine->new_sequence();
  answer(*engine, *sequence, prompt_of(100), {.max_new_tokens = 2});
  const auto scored = engine->score(*sequence, ids, 20, {});
  ASSERT_TRUE(scored.ok());
  EXPECT_EQ(scored->top1, engine->score(ids, 20, {})->top1);
  ids.push_back(5);
  ids.push_back(6);
  const GenerateOptions options{.max_new_tokens = 4, .reuse = PrefixReuse::kExact};
  const Generation after = answer(*engine, *sequence, ids, options);
  EXPECT_EQ(after.reused_tokens, 300);
  EXPECT_EQ(after.tokens, answer(*engine, *engine->new_sequence(), ids, options).tokens);
}

// Rules whose tiles drop blocks of prompts that the small models can take: rows 128 to 383 of 500
// are sparse.
constexpr SparseRule kSmallWinnow{.dense_tokens = 128, .tail_tokens = 64, .tau = 0.3F};
constexpr SparseRule kSmallV2{.kind = SparseRuleKind::kV2,
                              .dense_tokens = 128,
                              .tail_tokens = 64,
                              .alpha = 1,
                              .sink_blocks = 0,
                              .window_blocks = 1,
                              .dense_layers = 0};

class SparseEngineTest : public EngineTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    const std::string file = GetParam();
    const bool is_tiny = file.find("tiny/") == 0;
    is_real_ = !is_tiny;
    const std::string path = is_tiny ? test::golden_path(file) : test::model_path(file);
    SKIP_WITHOUT_MODEL(path);
    model_ = std::move(Model::load(path)).value();
  }
  std::unique_ptr<Engine> engine(int chunk, int threads, int num_contexts = 1) const {
    return std::move(Engine::create(model_, {.num_threads = threads,
                                             .chunk_tokens = chunk,
                                             .context_tokens = 512,
                                             .num_contexts = num_contexts}))
        .value();
  }

  // A real model takes longer: one rule is enough.
  std::vector<SparseRule> rules() const {
    if (is_real_) return {kSmallWinnow};
    return {kSmallWinnow, kSmallV2};
  }

  bool is_real_ = false;
  std::shared_ptr<const Model> model_;
};

INSTANTIATE_TEST_SUITE_P(Models, SparseEngineTest,
                         testing::Values("tiny/llama-untied.gguf", "tiny/llama-group3.gguf",
                                         "tiny/qwen2-bias.gguf", "tiny/qwen3-qk-norm.gguf",
                                         "tiny/gemma3-period.gguf",
                                         "smollm2-135m-instruct-q4_1.gguf"),
                         [](const auto& model) {
                           std::string name = model.param.substr(model.param.find('/') + 1);
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST_P(SparseEngineTest, NeitherChunksNorThreadsChangeALogit) {
  const std::vector<TokenId> ids = prompt_of(500);
  for (const SparseRule& rule : rules()) {
    const GenerateOptions options{.sparse = rule};
    const auto want = engine(512, 1)->score(ids, 300, options);
    ASSERT_TRUE(want.ok());
    EXPECT_LT(want->attention.density(), 1);
    for (const auto& [chunk, threads] : {std::pair{128, 2}, {256, 1}, {384, 3}}) {
      const auto got = engine(chunk, threads)->score(ids, 300, options);
      ASSERT_TRUE(got.ok());
      EXPECT_EQ(got->target_logprob, want->target_logprob)
          << "chunk " << chunk << ", threads " << threads;
      EXPECT_EQ(got->attention.kept_pairs, want->attention.kept_pairs);
      if (is_real_) break;
    }
  }
}

TEST_P(SparseEngineTest, ExactReuseAnswersAsAFreshRun) {
  for (const SparseRule& rule : rules()) {
    const GenerateOptions options{
        .max_new_tokens = 3, .reuse = PrefixReuse::kExact, .sparse = rule};
    GenerateOptions dense = options;
    dense.sparse.reset();
    const auto fresh_engine = engine(256, 1);
    const auto reusing = engine(384, 1);
    const auto sequence = reusing->new_sequence();
    struct Prompt {
      size_t length;
      size_t parts_at;  // from what went before
      const GenerateOptions* options;
    };
    std::vector<Prompt> prompts = {{250, 500, &options}, {500, 500, &options}, {501, 500, &options},
                                   {440, 500, &options}, {500, 300, &options}, {500, 300, &dense},
                                   {500, 500, &options}, {499, 200, &options}};
    if (is_real_) prompts = {{500, 500, &options}, {501, 500, &options}};
    for (const Prompt& prompt : prompts) {
      SCOPED_TRACE(testing::Message() << prompt.length << " tokens, parted at " << prompt.parts_at);
      std::vector<TokenId> tokens = prompt_of(prompt.length);
      if (prompt.parts_at < prompt.length) tokens[prompt.parts_at] = 3;
      const Generation got = answer(*reusing, *sequence, tokens, *prompt.options);
      const Generation fresh =
          answer(*fresh_engine, *fresh_engine->new_sequence(), tokens, *prompt.options);
      EXPECT_EQ(got.tokens, fresh.tokens);
      if (prompt.length == 501) {
        EXPECT_EQ(got.reused_tokens, 500);
      }
    }
  }
}

// Prompts and answers sparse, and answers alone.
std::vector<SparseRule> decode_rules() {
  SparseRule both = kSmallWinnow;
  both.decode = true;
  both.decode_tau = 0.3F;
  SparseRule answers = both;
  answers.prompt = false;
  return {both, answers};
}

// The answers fill a page of which they made a part.
TEST_P(SparseEngineTest, NeitherChunksNorThreadsNorReuseChangeASparseAnswer) {
  if (is_real_) GTEST_SKIP() << "the small models cover it";
  for (const SparseRule& rule : decode_rules()) {
    struct Answered {
      Generation generation;
      std::vector<std::vector<float>> logits;
    };
    const auto ask = [&](Engine& engine, Sequence& sequence, size_t length) {
      Answered answered;
      GenerateOptions options{.max_new_tokens = 100, .reuse = PrefixReuse::kExact, .sparse = rule};
      options.on_logits = [&](std::span<const float> logits) {
        answered.logits.emplace_back(logits.begin(), logits.end());
      };
      answered.generation = answer(engine, sequence, prompt_of(length), options);
      return answered;
    };
    const auto reference = engine(512, 1);
    const Answered want = ask(*reference, *reference->new_sequence(), 330);
    EXPECT_EQ(want.generation.attention.has_selection(), rule.prompt);
    EXPECT_TRUE(want.generation.answer_attention.has_selection());
    EXPECT_LT(want.generation.answer_attention.density(), 1);
    for (const auto& [chunk, threads] : {std::pair{128, 2}, {256, 3}}) {
      if (kSlowBuild && chunk == 128) continue;
      const auto other = engine(chunk, threads);
      const auto sequence = other->new_sequence();
      for (const size_t before : {200, 330, 340}) ask(*other, *sequence, before);
      const Answered got = ask(*other, *sequence, 330);
      EXPECT_EQ(got.generation.reused_tokens, 329);
      EXPECT_EQ(got.logits, want.logits) << "chunk " << chunk << ", threads " << threads;
    }
  }
}

TEST_P(SparseEngineTest, ShortPromptsHaveDenseAnswers) {
  if (is_real_) GTEST_SKIP() << "the small models cover it";
  const auto engine = this->engine(512, 1);
  for (SparseRule rule : decode_rules()) {
    const auto is_sparse = [&](size_t length) {
      return answer(*engine, *engine->new_sequence(), prompt_of(length),
                    {.max_new_tokens = 100, .sparse = rule})
          .answer_attention.has_selection();
    };
    EXPECT_FALSE(is_sparse(127));
    EXPECT_TRUE(is_sparse(128));
    rule.min_tokens = 200;
    EXPECT_FALSE(is_sparse(199));
    EXPECT_TRUE(is_sparse(200));
  }
}

TEST_P(SparseEngineTest, ASparseAnswerServesNoPromptOfAnotherRule) {
  if (is_real_) GTEST_SKIP() << "the small models cover it";
  const auto engine = this->engine(512, 1);
  const SparseRule rule = decode_rules()[1];
  const auto sequence = engine->new_sequence();
  std::vector<TokenId> prompt = prompt_of(200);
  const Generation first =
      answer(*engine, *sequence, prompt, {.max_new_tokens = 100, .sparse = rule});
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  prompt.push_back(7);
  EXPECT_EQ(answer(*engine, *sequence, prompt, {.max_new_tokens = 1, .sparse = rule}).reused_tokens,
            299);
  EXPECT_EQ(answer(*engine, *sequence, prompt, {.max_new_tokens = 1}).reused_tokens, 200);
}

TEST_P(SparseEngineTest, ComparedAnswersAreThoseOfTheTextAndDifferOnlyWhereSparse) {
  if (is_real_) GTEST_SKIP() << "the small models cover it";
  const std::vector<TokenId> ids = prompt_of(500);
  const auto engine = this->engine(256, 2, 2);
  const GenerateOptions dense;
  for (const bool sparse : {false, true}) {
    GenerateOptions other;
    if (sparse) other.sparse = decode_rules()[1];
    int64_t position = 256;
    int64_t num_equal = 0;
    const auto compared =
        engine->compare_answers(ids, 256, dense, other, [&](const LogitPair& pair) {
          EXPECT_EQ(pair.position, position++);
          num_equal += std::equal(pair.reference.begin(), pair.reference.end(), pair.other.begin());
        });
    ASSERT_TRUE(compared.ok()) << compared.error().message;
    EXPECT_EQ(position, 500);
    EXPECT_EQ(compared->reference.attention.density(), 1);
    EXPECT_EQ(compared->other.attention.density() < 1, sparse);
    EXPECT_EQ(num_equal == 244, !sparse);
  }
}

TEST_P(SparseEngineTest, ComparingDenseWithDenseFindsNoDifference) {
  if (is_real_) GTEST_SKIP() << "the small models cover it";
  const std::vector<TokenId> ids = prompt_of(500);
  std::atomic<int64_t> pairs = 0;
  const auto attention = engine(256, 2, 2)->compare(ids, 200, 400, {}, {}, [&](const LogitPair& p) {
    ++pairs;
    EXPECT_TRUE(std::equal(p.reference.begin(), p.reference.end(), p.other.begin()));
  });
  ASSERT_TRUE(attention.ok());
  EXPECT_EQ(pairs, 200);
  EXPECT_EQ(attention->other.density(), 1);
}

// log p of a token as Engine::score computes it.
float logprob_of(std::span<const float> logits, TokenId token) {
  const float top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit - top));
  return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)] - top) -
                            std::log(sum));
}

// Positions may begin and end anywhere; the rows are those of a run of the whole text.
TEST_P(SparseEngineTest, ComparedRowsAreThoseOfARunOfTheWholeText) {
  if (is_real_) GTEST_SKIP() << "the small models cover it";
  const std::vector<TokenId> ids = prompt_of(500);
  for (const SparseRule& rule : rules()) {
    const GenerateOptions sparse{.sparse = rule};
    const auto scored = engine(512, 2)->score(ids, 500, sparse);
    ASSERT_TRUE(scored.ok());
    for (const auto& [begin, end] : {std::pair{213, 355}, {256, 384}, {250, 251}, {411, 499}}) {
      SCOPED_TRACE(testing::Message() << "positions " << begin << " to " << end);
      std::vector<std::atomic<int>> seen(500);
      const auto attention =
          engine(256, 2, 2)->compare(ids, begin, end, {}, sparse, [&](const LogitPair& pair) {
            const auto at = static_cast<size_t>(pair.position);
            ++seen[at];
            EXPECT_EQ(scored->target_logprob[at], logprob_of(pair.other, ids[at + 1]))
                << "position " << at;
          });
      ASSERT_TRUE(attention.ok());
      EXPECT_EQ(attention->other.kept_pairs, scored->attention.kept_pairs);
      for (int position = 0; position < 500; ++position) {
        ASSERT_EQ(seen[static_cast<size_t>(position)], begin <= position && position < end);
      }
    }
  }
}

}  // namespace
}  // namespace winnow
