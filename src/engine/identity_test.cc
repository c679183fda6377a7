// The first law (docs/architecture.md) at the size of a day's work: prompts that begin alike, in
// random company, with random budgets, from the cache and after preemptions, give the bits that
// each gives alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/batch_runner.h"
#include "engine/cache_scope.h"
#include "engine/engine.h"
#include "engine/token_scores.h"
#include "sim/dice.h"
#include "support/golden.h"

namespace winnow::identity {
namespace {

constexpr int32_t kTopLogprobs = 4;

using sim::Dice;

struct Question {
  std::vector<TokenId> prompt;
  int64_t answer_tokens = 0;
  std::optional<SparseRule> rule = {};
  bool read_cache = true;
};

using Answer = std::vector<ScoredToken>;

bool same_bits(const Answer& a, const Answer& b) {
  const auto same_token = [](const ScoredToken& x, const ScoredToken& y) {
    const auto same_top = [](const auto& p, const auto& q) {
      return p.token == q.token && p.logprob == q.logprob;
    };
    return x.token == y.token && x.logprob == y.logprob &&
           std::ranges::equal(x.top, y.top, same_top);
  };
  return std::ranges::equal(a, b, same_token);
}

// What an engine answers that has nothing else to do and starts with an empty cache.
class Alone {
 public:
  explicit Alone(const std::shared_ptr<const Model>& model) {
    auto engine = Engine::create(model, {.num_threads = 1, .context_tokens = 512});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(engine).value();
  }
  Answer answer(const Question& question) {
    Answer answer;
    std::vector<float> logits;
    GenerateOptions how{.max_new_tokens = question.answer_tokens, .sparse = question.rule};
    how.on_logits = [&](std::span<const float> row) { logits.assign(row.begin(), row.end()); };
    how.on_token = [&](TokenId token) {
      answer.push_back(RowSoftmax(logits).score(token, kTopLogprobs));
      return true;
    };
    const auto sequence = engine_->new_sequence();
    const auto generation = engine_->generate(*sequence, question.prompt, how);
    EXPECT_TRUE(generation.ok()) << generation.error().message;
    return answer;
  }

 private:
  std::unique_ptr<Engine> engine_;
};

// Questions whose prompts begin like earlier ones, or like earlier ones and their answers.
class Questions {
 public:
  Questions(Dice& dice, TokenId vocab_size, bool sparse)
      : dice_(dice), vocab_size_(vocab_size), sparse_(sparse) {}

  Question next() {
    Question question{.prompt = prompt(), .read_cache = !dice_.one_in(10)};
    question.answer_tokens = dice_.between(1, 12);
    // Now and then a crowd whose answers outgrow the pages.
    if (++num_asked_ % 100 > 20 && num_asked_ % 100 <= 29) {
      question.prompt.resize(static_cast<size_t>(kPageTokens - dice_.between(0, 2)));
      question.answer_tokens = kLongAnswer;
    }
    if (sparse_ && !dice_.one_in(4)) {
      const SparseRule both{
          .decode = true, .dense_tokens = 128, .tail_tokens = 64, .tau = 0.3F, .decode_tau = 0.3F};
      const SparseRule v2{.kind = SparseRuleKind::kV2, .dense_tokens = 128, .dense_layers = 0};
      question.rule = dice_.one_in(4) ? v2 : both;
    }
    return question;
  }
  void add_text(const Question& question, const Answer& answer) {
    texts_.push_back(question.prompt);
    for (const ScoredToken& token : answer) texts_.back().push_back(token.token);
  }

 private:
  // Most lengths lie about a page edge.
  int64_t length(int64_t longest) {
    if (dice_.one_in(3)) return dice_.between(1, longest);
    const int64_t edge = dice_.between(0, longest / kPageTokens) * kPageTokens;
    return std::clamp<int64_t>(edge + dice_.between(-2, 2), 1, longest);
  }
  std::vector<TokenId> prompt() {
    std::vector<TokenId> tokens;
    if (!texts_.empty() && !dice_.one_in(6)) {
      const auto newest = std::ssize(texts_) - 1;
      tokens = texts_[static_cast<size_t>(newest - dice_.between(0, std::min<int64_t>(newest, 7)))];
      if (!dice_.one_in(3)) tokens.resize(static_cast<size_t>(length(std::ssize(tokens))));
      tokens.resize(std::min<size_t>(tokens.size(), kLongest - 1));
    }
    if (tokens.empty() || !dice_.one_in(5)) {
      const auto end = std::max<int64_t>(length(kLongest), std::ssize(tokens) + 1);
      while (std::ssize(tokens) < end) {
        tokens.push_back(static_cast<TokenId>(dice_.between(0, vocab_size_ - 1)));
      }
    }
    return tokens;
  }

  static constexpr int64_t kLongest = 3 * kPageTokens + 3;  // of prompts
  static constexpr int64_t kLongAnswer = 270;
  Dice& dice_;
  TokenId vocab_size_;
  bool sparse_;
  int64_t num_asked_ = 0;
  std::vector<std::vector<TokenId>> texts_;
};

// The scheduler, the cache and the runner of the service, without its threads and clocks: the same
// seed gives the same steps.
class Company {
 public:
  struct Counts {
    int64_t asked = 0;
    int64_t cancelled = 0;
    int64_t preemptions = 0;
    int64_t cached_tokens = 0;
    int64_t copied_tokens = 0;
    int64_t adoptions = 0;
  };

  Company(const Model& model, int64_t num_pages, Dice& dice)
      : dice_(dice),
        num_layers_(static_cast<int>(model.config().layers.size())),
        runner_(model, **select_kernels(""), 2,
                *KvStore::create(kv_layouts(model.config(), KvDType::kBf16), num_pages), {}),
        cache_(runner_.kv().pool(), 5),
        scheduler_({.max_running = 8, .max_rerun_tokens = 5}, runner_.kv().pool(), cache_) {}

  bool idle() const { return !scheduler_.has_work(); }
  int64_t num_waiting() const { return scheduler_.num_waiting(); }

  void ask(const Question& question) {
    const RequestId id{static_cast<uint64_t>(++counts_.asked)};
    ServiceRequest request{.prompt = question.prompt,
                           .max_new_tokens = question.answer_tokens,
                           .sparse = question.rule,
                           .score_tokens = true,
                           .num_top_logprobs = kTopLogprobs};
    auto made = std::make_unique<BatchRequest>(id, std::move(request), nullptr,
                                               question.answer_tokens, num_layers_);
    ScheduledRequest scheduled{.id = id,
                               .prompt = question.prompt,
                               .max_new_tokens = question.answer_tokens,
                               .mode = made->mode,
                               .cache = {.read = question.read_cache}};
    scheduled.cache.scope = cache_scope("", made->mode, question.prompt);
    ASSERT_EQ(scheduler_.submit(std::move(scheduled)), Admission::kQueued);
    requests_.emplace(id, Running{question, std::move(made), {}});
  }

  void cancel_one() {
    if (requests_.empty()) return;
    const auto victim = std::next(requests_.begin(), dice_.between(0, std::ssize(requests_) - 1));
    scheduler_.end(victim->first);
    requests_.erase(victim);
    ++counts_.cancelled;
  }

  // Calls `on_end` with a question and its answer.
  template <typename OnEnd>
  void step(int32_t budget, const OnEnd& on_end) {
    const StepPlan plan = scheduler_.plan(budget);
    const auto copies = scheduler_.begin(plan);
    ASSERT_TRUE(copies.has_value());
    for (const PageCopy& copy : *copies) {
      runner_.copy(copy);
      counts_.copied_tokens += copy.num_tokens;
    }
    for (const RequestId id : plan.preempted) runner_.restarted(request(id), {});
    for (const PlannedAdmission& admission : plan.admitted) {
      const std::span pages = scheduler_.find(admission.id)->pages;
      const auto num_cached = static_cast<size_t>(admission.cached_tokens / kPageTokens);
      runner_.restarted(request(admission.id), pages.first(num_cached));
      counts_.cached_tokens += admission.cached_tokens;
    }
    counts_.preemptions += std::ssize(plan.preempted);
    counts_.adoptions += std::ssize(plan.adopted);
    const auto find = [&](RequestId id) -> BatchRequest& { return request(id); };
    std::vector<StepOutcome> outcomes = runner_.run(plan, scheduler_, find);
    std::vector<StepResult> results(plan.steps.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (!outcomes[i].next) continue;
      Running& running = requests_.at(plan.steps[i].id);
      ASSERT_TRUE(outcomes[i].next->ok());
      running.answer.push_back(outcomes[i].next->value());
      results[i].next_token = running.answer.back().token;
      results[i].ended = std::ssize(running.answer) == running.question.answer_tokens;
    }
    for (const ExchangedPage& page : scheduler_.commit(plan, results)) {
      runner_.exchanged(request(page.id), page.page_idx);
    }
    scheduler_.check_invariants();
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].ended) continue;
      const auto ended = requests_.extract(plan.steps[i].id);
      on_end(ended.mapped().question, ended.mapped().answer);
    }
  }

  Counts counts() const { return counts_; }
  int64_t num_live_pages() {
    const PagePool& pool = runner_.kv().pool();
    return pool.num_pages() - pool.num_free() - cache_.num_evictable();
  }

 private:
  struct Running {
    Question question;
    std::unique_ptr<BatchRequest> request;
    Answer answer;
  };
  BatchRequest& request(RequestId id) { return *requests_.at(id).request; }

  Dice& dice_;
  int num_layers_;
  BatchRunner runner_;
  PrefixCache cache_;
  Scheduler scheduler_;
  std::map<RequestId, Running> requests_;
  Counts counts_;
};

struct Load {
  std::string model;
  bool sparse = false;
  int64_t num_questions = 0;
  int64_t num_if_full = 0;  // with WINNOW_FULL=1
};

class Identity : public testing::TestWithParam<Load> {};

TEST_P(Identity, OfAnswersAloneAndInAnyCompanyFromTheCacheAndAfterPreemptions) {
  const Load& load = GetParam();
  const bool full = std::getenv("WINNOW_FULL") != nullptr;
  const int64_t num_questions = full ? load.num_if_full : load.num_questions;
  SKIP_WITHOUT_MODEL(load.model);
  if (num_questions == 0) GTEST_SKIP() << "minutes: WINNOW_FULL=1 runs it";
  const auto model = Model::load(load.model);
  ASSERT_TRUE(model.ok()) << model.error().message;
  Dice dice(1);
  Alone alone(*model);
  Questions questions(dice, (*model)->config().vocab_size, load.sparse);
  // Too few pages for all that may run.
  Company company(**model, 16, dice);
  int64_t num_same = 0;
  const auto on_end = [&](const Question& question, const Answer& answer) {
    const bool same = same_bits(answer, alone.answer(question));
    EXPECT_TRUE(same) << question.prompt.size() << " tokens";
    num_same += same ? 1 : 0;
    questions.add_text(question, answer);
  };
  while (company.counts().asked < num_questions || !company.idle()) {
    if (company.counts().asked < num_questions && company.num_waiting() < 6 && !dice.one_in(3)) {
      for (int64_t i = dice.between(1, 3); i > 0; --i) company.ask(questions.next());
    }
    if (dice.one_in(150)) company.cancel_one();
    const int32_t budgets[] = {1, 128, 128, 200, 384, 1024};
    if (!company.idle()) company.step(budgets[dice.between(0, 5)], on_end);
    if (HasFatalFailure()) return;
  }
  const Company::Counts counts = company.counts();
  std::printf(
      "%lld questions, %lld cancelled, %lld answered alike; %lld preemptions, %lld tokens "
      "from the cache, %lld of them copied, %lld adoptions\n",
      static_cast<long long>(counts.asked), static_cast<long long>(counts.cancelled),
      static_cast<long long>(num_same), static_cast<long long>(counts.preemptions),
      static_cast<long long>(counts.cached_tokens), static_cast<long long>(counts.copied_tokens),
      static_cast<long long>(counts.adoptions));
  EXPECT_EQ(num_same, counts.asked - counts.cancelled);
  EXPECT_GT(counts.preemptions, 0);
  EXPECT_GT(counts.copied_tokens, 0);
  EXPECT_GT(counts.cached_tokens, counts.copied_tokens);
  EXPECT_EQ(company.num_live_pages(), 0);
}

Load tiny(bool sparse) { return {test::golden_path("tiny/llama-untied.gguf"), sparse, 50, 1000}; }
Load smollm2(bool sparse) {
  return {test::model_path("smollm2-135m-instruct-q4_1.gguf"), sparse, 0, 100};
}

INSTANTIATE_TEST_SUITE_P(Tiny, Identity, testing::Values(tiny(false), tiny(true)),
                         [](const auto& load) { return load.param.sparse ? "sparse" : "dense"; });
INSTANTIATE_TEST_SUITE_P(SmolLm2, Identity, testing::Values(smollm2(false), smollm2(true)),
                         [](const auto& load) { return load.param.sparse ? "sparse" : "dense"; });

}  // namespace
}  // namespace winnow::identity
