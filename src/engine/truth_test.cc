// Real models against the log-probabilities of an independent float32 forward pass
// (tests/golden/truth).
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "engine/engine.h"
#include "support/golden.h"

namespace winnow {
namespace {

struct Difference {
  double perplexity_ratio = 0;
  double same_top1 = 0;
  double mean_logprob = 0;
};

Difference compare(const ScoredText& scored, const std::vector<float>& logprobs,
                   const std::vector<TokenId>& top1) {
  double ours = 0, theirs = 0, absolute = 0;
  for (size_t i = 0; i < logprobs.size(); ++i) {
    const double mine = scored.target_logprob[i];
    ours += mine;
    theirs += logprobs[i];
    absolute += std::abs(mine - logprobs[i]);
  }
  double same = 0;
  for (size_t i = 0; i < top1.size(); ++i) same += scored.top1[i] == top1[i] ? 1 : 0;
  const auto count = static_cast<double>(logprobs.size());
  return {std::exp((theirs - ours) / count), same / static_cast<double>(top1.size()),
          absolute / count};
}

// More than 8192 tokens.
bool is_long(const std::vector<TokenId>& ids) { return ids.size() > 8192; }

class Truth : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(Truth, RealModelsScoreTextAsTheReferenceDoes) {
  const auto [golden_name, model_name] = GetParam();
  const std::string path = test::model_path(model_name);
  SKIP_WITHOUT_MODEL(path);
  const auto golden = test::load_golden(golden_name);
  const auto ids = test::numbers<TokenId>(golden.at("ids"));
  if (is_long(ids) && std::getenv("WINNOW_FULL") == nullptr) {
    GTEST_SKIP() << "a minute or more: WINNOW_FULL=1 runs it";
  }
  const auto model = Model::load(path);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto engine = Engine::create(*model, {});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  const auto top1 = test::numbers<TokenId>(golden.at("top1"));
  const auto scored = (*engine)->score(ids, std::ssize(top1), {});
  ASSERT_TRUE(scored.ok()) << scored.error().message;
  const Difference difference =
      compare(*scored, test::numbers<float>(golden.at("target_logprob")), top1);
  std::printf("perplexity x %.4f, same top token %.2f %%, mean |log-probability difference| %.4f\n",
              difference.perplexity_ratio, 100 * difference.same_top1, difference.mean_logprob);
  EXPECT_NEAR(difference.perplexity_ratio, 1, 0.008);
  EXPECT_GE(difference.same_top1, 0.98);
  EXPECT_LE(difference.mean_logprob, 0.05);
}

// The golden file's name without folder, dashes and end: truth/truth-gemma3-code-1024.json is
// truth_gemma3_code_1024.
std::string name_of(const testing::TestParamInfo<Truth::ParamType>& info) {
  std::string name = std::filesystem::path(info.param.first).stem();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

constexpr const char* kSmolLm2 = "smollm2-135m-instruct-q4_1.gguf";
constexpr const char* kGemma3 = "gemma-3-270m-q4_k_m.gguf";
constexpr const char* kQwen = "qwen2.5-coder-0.5b-instruct.gguf";

INSTANTIATE_TEST_SUITE_P(Models, Truth,
                         testing::Values(std::pair{"truth/truth-smollm2-code-1024.json", kSmolLm2},
                                         std::pair{"truth/truth-smollm2-prose-1024.json", kSmolLm2},
                                         std::pair{"truth/truth-gemma3-code-1024.json", kGemma3},
                                         std::pair{"truth/truth-gemma3-prose-1024.json", kGemma3},
                                         std::pair{"truth/truth-qwen0.5b-code-1024.json", kQwen},
                                         std::pair{"truth/truth-qwen0.5b-prose-1024.json", kQwen},
                                         std::pair{"truth/long-gemma3-code-8192.json", kGemma3},
                                         std::pair{"truth/long-gemma3-prose-12288.json", kGemma3},
                                         std::pair{"truth/long-gemma3-prose-32768.json", kGemma3},
                                         std::pair{"truth/long-qwen0.5b-needles-8192.json", kQwen},
                                         std::pair{"truth/long-qwen0.5b-code-16384.json", kQwen}),
                         name_of);

}  // namespace
}  // namespace winnow
