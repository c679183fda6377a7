#include "engine/sequence.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

namespace winnow {
namespace {

constexpr int64_t kLength = 5000;

std::vector<TokenId> tokens_of(int64_t count) {
  std::vector<TokenId> tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

std::unique_ptr<KvStore> store() {
  const KvLayout layout{.kv_heads = 1, .head_dim = 16, .sketch_rank = 4};
  return std::move(KvStore::create(std::span(&layout, 1), 64)).value();
}

SparseRule rule_of(int32_t dense_tokens, float tau) {
  return {.dense_tokens = dense_tokens, .tau = tau};
}
const SparseRule kRule = rule_of(1024, 0.01F);
const SparseRule kOther = rule_of(2048, 0.01F);

PromptMode dense() { return {}; }
PromptMode sparse(const SparseRule& rule, int32_t sparse_end) { return {rule, sparse_end}; }

// Runs a prompt of `prompt_tokens` tokens in `mode`, of which the sequence keeps what it can, and
// `answer_tokens` generated ones.
int64_t run(Sequence& sequence, int64_t prompt_tokens, const PromptMode& mode, bool exact,
            int64_t answer_tokens = 0) {
  const std::vector<TokenId> all = tokens_of(prompt_tokens + answer_tokens);
  const std::span prompt = std::span(all).first(static_cast<size_t>(prompt_tokens));
  const int64_t kept = sequence.reuse(prompt, mode, exact);
  EXPECT_EQ(sequence.size(), kept);
  EXPECT_TRUE(sequence.reserve(prompt_tokens + answer_tokens));
  sequence.append(prompt.subspan(static_cast<size_t>(kept)), Phase::kPrompt);
  for (int64_t i = 0; i < answer_tokens; ++i) {
    sequence.append(std::span(all).subspan(static_cast<size_t>(prompt_tokens + i), 1),
                    Phase::kGenerate);
  }
  return kept;
}

struct ReuseCase {
  std::string name;
  PromptMode was;
  PromptMode now;
  int64_t kept_exact;
  int64_t kept_all;
};

// Both prompts have kLength tokens and begin alike.
TEST(SequenceReuse, KeepsWhatTheNewModeWouldHaveComputedOrMore) {
  const ReuseCase cases[] = {
      {"dense, dense", dense(), dense(), 4999, 4999},
      {"a rule without sparse rows is dense", sparse(kRule, 1024), dense(), 4999, 4999},
      {"two rules without sparse rows are dense", sparse(kRule, 1024), sparse(kOther, 2048), 4999,
       4999},
      {"the same sparse rows", sparse(kRule, 4864), sparse(kRule, 4864), 4999, 4999},
      {"dense rows serve sparse ones, though not exactly", dense(), sparse(kRule, 4864), 1024,
       4999},
      {"sparse rows do not serve dense ones", sparse(kRule, 4864), dense(), 1024, 1024},
      {"a short prompt's rows serve a longer one", sparse(kRule, 1024), sparse(kRule, 4864), 1024,
       4999},
      {"sparse rows that now are dense", sparse(kRule, 4864), sparse(kRule, 2560), 2560, 2560},
      {"dense rows that now are sparse", sparse(kRule, 2560), sparse(kRule, 4864), 2560, 4999},
      {"no rows are sparse now", sparse(kRule, 4864), sparse(kRule, 1024), 1024, 1024},
      {"another rule, dense for longer", sparse(kRule, 4864), sparse(kOther, 4864), 1024, 1024},
      {"another rule, sparse sooner", sparse(kOther, 4864), sparse(kRule, 4864), 1024, 2048},
      {"another threshold", sparse(kRule, 4864), sparse(rule_of(1024, 0.02F), 4864), 1024, 1024},
  };
  for (const ReuseCase& test : cases) {
    for (const bool exact : {true, false}) {
      SCOPED_TRACE(test.name + (exact ? ", exact" : ", all"));
      const auto kv = store();
      Sequence sequence(*kv);
      run(sequence, kLength, test.was, false);
      const int64_t kept = exact ? test.kept_exact : test.kept_all;
      EXPECT_EQ(run(sequence, kLength, test.now, exact), kept);
    }
  }
}

TEST(SequenceReuse, ASharedPrefixThatEndsAmongSparseRowsIsCutToWholePages) {
  for (const auto& [shared, kept] : {std::pair<int64_t, int64_t>{900, 900},
                                     {1024, 1024},
                                     {1025, 1024},
                                     {1100, 1024},
                                     {1200, 1152},
                                     {2559, 2432},
                                     {2560, 2560},
                                     {2700, 2700}}) {
    SCOPED_TRACE(shared);
    const auto kv = store();
    Sequence sequence(*kv);
    run(sequence, kLength, sparse(kRule, 2560), false);
    std::vector<TokenId> prompt = tokens_of(kLength);
    prompt[static_cast<size_t>(shared)] = -1;
    EXPECT_EQ(sequence.reuse(prompt, sparse(kRule, 2560), true), kept);
  }
}

TEST(SequenceReuse, AnAnswersTokensServeUnlessExactlyThoseOfAPromptAreAskedFor) {
  for (const bool exact : {true, false}) {
    const auto kv = store();
    Sequence sequence(*kv);
    run(sequence, 300, dense(), exact, 50);
    EXPECT_EQ(run(sequence, 400, dense(), exact), exact ? 300 : 350);
    EXPECT_EQ(run(sequence, 500, dense(), exact), 400);
    EXPECT_EQ(sequence.prompt_prefix(), exact ? 500 : 300);
  }
}

// What was kept inexactly never counts as exact later.
TEST(SequenceReuse, TokensOfAnEarlierModeStayInexact) {
  const auto kv = store();
  Sequence sequence(*kv);
  run(sequence, kLength, dense(), true);
  EXPECT_EQ(run(sequence, kLength, sparse(kRule, 4864), false), 4999);
  EXPECT_EQ(run(sequence, kLength, sparse(kRule, 4864), true), 1024);
  EXPECT_EQ(run(sequence, kLength, sparse(kRule, 4864), true), 4999);
}

// Whatever the modes before were, what is said to be exact is what a fresh run would hold: each
// token remembers the mode it was run in.
TEST(SequenceReuse, AfterAnyModesWhatIsExactWasRunInTheModeAskedFor) {
  const PromptMode modes[] = {dense(),
                              sparse(kRule, 1024),
                              sparse(kRule, 2560),
                              sparse(kRule, 4864),
                              sparse(kOther, 4864),
                              sparse(kOther, 2048)};
  // How a token attends in a mode: 0 = densely, else by a rule. Equal answers at all tokens up to
  // one mean equal bits there.
  const auto how = [](const PromptMode& mode, int64_t token) {
    const bool is_sparse =
        mode.has_sparse_rows() && token >= mode.rule->dense_tokens && token < mode.sparse_end;
    return is_sparse ? mode.rule->dense_tokens : 0;
  };
  uint32_t state = 12345;
  const auto next = [&](uint32_t count) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8) % count;
  };
  for (int round = 0; round < 50; ++round) {
    const auto kv = store();
    Sequence sequence(*kv);
    std::vector<int32_t> was;  // how each cached token attended; -1 = generated
    for (int step = 0; step < 8; ++step) {
      const PromptMode& mode = modes[next(6)];
      const bool exact = next(2) == 0;
      const int64_t length = 4900 + next(100);
      const int64_t answer = next(3) == 0 ? 20 : 0;
      SCOPED_TRACE(testing::Message() << "round " << round << ", step " << step << ", seed 12345");
      const int64_t kept = run(sequence, length, mode, exact, answer);
      ASSERT_LE(kept, std::ssize(was));
      for (int64_t token = 0; token < kept; ++token) {
        const int32_t before = was[static_cast<size_t>(token)];
        if (exact) {
          ASSERT_EQ(before, how(mode, token)) << "token " << token;
        } else if (before > 0) {  // sparse rows serve those of the same rule
          ASSERT_EQ(before, how(mode, token)) << "token " << token;
        }
      }
      was.resize(static_cast<size_t>(kept));
      for (int64_t token = kept; token < length; ++token) was.push_back(how(mode, token));
      was.resize(static_cast<size_t>(length + answer), -1);
    }
  }
}

}  // namespace
}  // namespace winnow
