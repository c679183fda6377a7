// Law 1: a token's result depends on its own prefix alone, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "model/model.h"
#include "support/each_isa.h"
#include "support/golden.h"
#include "support/step_runner.h"

namespace winnow {
namespace {

using test::FedSequence;
using test::StepRunner;

constexpr int kGenerated = 6;

struct Case {
  std::string model;
  size_t prompt_tokens;
};

std::vector<TokenId> some_tokens(size_t count, int32_t vocab_size, uint32_t seed) {
  std::vector<TokenId> tokens(count);
  uint32_t state = seed * 2654435761U + 1;
  for (TokenId& token : tokens) {
    state = state * 1664525U + 1013904223U;
    token = static_cast<TokenId>((state >> 8) % static_cast<uint32_t>(vocab_size));
  }
  return tokens;
}

std::vector<std::vector<float>> run_alone(const Model& model, const KernelTable& kernels,
                                          std::span<const TokenId> prompt, size_t chunk,
                                          int threads) {
  StepRunner runner(model, kernels, threads, 16);
  FedSequence sequence;
  runner.prefill(sequence, prompt, chunk);
  return runner.generate(sequence, kGenerated);
}

// The same prompt while seven others, of other lengths, start and generate in the same steps.
std::vector<std::vector<float>> run_beside_others(const Model& model, const KernelTable& kernels,
                                                  std::span<const TokenId> prompt, size_t chunk) {
  StepRunner runner(model, kernels, 2, 64);
  FedSequence sequence;
  std::vector<FedSequence> others(7);
  for (size_t i = 0; i < 4; ++i) {
    runner.prefill(others[i],
                   some_tokens(3 + 40 * i, model.config().vocab_size, static_cast<uint32_t>(i)),
                   128);
  }
  size_t late = 4;
  for (size_t begin = 0; begin < prompt.size(); begin += chunk) {
    const size_t end = std::min(prompt.size(), begin + chunk);
    std::vector<StepRunner::Part> parts;
    if (late < others.size()) {
      parts.push_back(
          {&others[late], some_tokens(17 * late, model.config().vocab_size, 99), Phase::kPrompt});
      ++late;
    }
    parts.push_back({&sequence, {prompt.begin() + begin, prompt.begin() + end}, Phase::kPrompt});
    for (size_t i = 0; i < 4; ++i)
      parts.push_back({&others[i], {StepRunner::greedy(others[i])}, Phase::kGenerate});
    runner.step(std::move(parts));
  }
  std::vector<std::vector<float>> logits = {sequence.logits};
  for (int i = 0; i < kGenerated; ++i) {
    std::vector<StepRunner::Part> parts;
    for (size_t j = 0; j < 4; ++j)
      parts.push_back({&others[j], {StepRunner::greedy(others[j])}, Phase::kGenerate});
    parts.insert(parts.begin() + i % 4,
                 {&sequence, {StepRunner::greedy(sequence)}, Phase::kGenerate});
    runner.step(std::move(parts));
    logits.push_back(sequence.logits);
  }
  return logits;
}

bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  });
}

class PrefixLaw : public testing::TestWithParam<Isa> {
 protected:
  void check(const std::string& path, size_t prompt_tokens, std::vector<size_t> chunks) {
    if (!cpu_supports(GetParam()))
      GTEST_SKIP() << "not run: this CPU lacks " << isa_name(GetParam());
    SKIP_WITHOUT_MODEL(path);
    const KernelTable& kernels = kernel_table(GetParam());
    const auto loaded = Model::load(path);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message;
    const Model& model = **loaded;
    std::vector<int> threads_of_a_run = {1, 2, 3};
    if (is_slow(GetParam())) {
      prompt_tokens = std::min<size_t>(prompt_tokens, 301);
      threads_of_a_run = {2};
    }
    const std::vector<TokenId> prompt = some_tokens(prompt_tokens, model.config().vocab_size, 5);
    const auto want = run_alone(model, kernels, prompt, prompt.size(), 1);
    for (const size_t chunk : chunks) {
      for (const int threads : threads_of_a_run) {
        EXPECT_TRUE(same_bits(want, run_alone(model, kernels, prompt, chunk, threads)))
            << "chunk " << chunk << ", threads " << threads;
      }
    }
    EXPECT_TRUE(same_bits(want, run_beside_others(model, kernels, prompt, 128)));
  }
};

TEST_P(PrefixLaw, LlamaRepeatsItsBits) {
  check(test::golden_path("tiny/llama-untied.gguf"), 1100, {256, 1024});
}
TEST_P(PrefixLaw, EveryWeightTypeRepeatsItsBits) {
  check(test::golden_path("tiny/llama-mixed-types.gguf"), 301, {97, 128, 256});
  check(test::golden_path("tiny/llama-low-bits.gguf"), 140, {97, 128});
}
TEST_P(PrefixLaw, Qwen2RepeatsItsBits) {
  check(test::golden_path("tiny/qwen2-bias.gguf"), 301, {128, 256});
}
TEST_P(PrefixLaw, Qwen3RepeatsItsBits) {
  check(test::golden_path("tiny/qwen3-qk-norm.gguf"), 301, {128, 256});
}
TEST_P(PrefixLaw, Gemma3RepeatsItsBits) {
  check(test::golden_path("tiny/gemma3-period.gguf"), 301, {1, 97, 128, 256});
}
TEST_P(PrefixLaw, SmolLm2RepeatsItsBits) {
  if (GetParam() == Isa::kScalar)
    GTEST_SKIP() << "scalar: too slow for a real model; the tiny ones cover it";
  check(test::model_path("smollm2-135m-instruct-q4_1.gguf"), 300, {128});
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, PrefixLaw,
                         testing::ValuesIn(known_isas().begin(), known_isas().end()),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

}  // namespace
}  // namespace winnow
