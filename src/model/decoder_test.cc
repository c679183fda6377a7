// The forward pass against logits that transformers computed for tiny random models
// (tests/golden/tiny).
#include "model/decoder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "support/each_isa.h"
#include "support/golden.h"
#include "support/step_runner.h"

namespace winnow {
namespace {

using test::FedSequence;
using test::StepRunner;

struct TinyModel {
  const char* name;
  // Largest difference of a logit, as a share of the logits' root mean square. What the 16-bit KV
  // cache costs; for quantised weights also what quantising their input costs.
  double tolerance;
  // The same where prompts round weights and inputs to bf16, as amx does for quantised weights:
  // each linear layer adds some 2^-9 of its result.
  double bf16_tolerance = tolerance;
};

constexpr TinyModel kTinyModels[] = {
    {"llama-group3", 0.03},        {"llama-linear-rope", 0.03}, {"llama-per-layer", 0.03},
    {"llama-rope-freqs", 0.03},    {"llama-untied", 0.03},      {"llama-mixed-types", 0.03, 0.1},
    {"llama-low-bits", 0.03, 0.1}, {"qwen2-bias", 0.03},        {"qwen2-partial-rope", 0.03},
    {"qwen3-qk-norm", 0.03},       {"gemma3-default", 0.03},    {"gemma3-flags", 0.03},
    {"gemma3-period", 0.03},
};

double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

class TinyModels : public testing::TestWithParam<std::tuple<TinyModel, Isa>> {};

TEST_P(TinyModels, LogitsEqualThoseOfTransformers) {
  const auto& [tiny, isa] = GetParam();
  if (!cpu_supports(isa)) GTEST_SKIP() << "not run: this CPU lacks " << isa_name(isa);
  const auto golden = test::load_golden("tiny/" + std::string(tiny.name) + ".json");
  const auto ids = test::numbers<TokenId>(golden.at("ids"));
  const auto positions = test::numbers<int32_t>(golden.at("positions"));
  const auto model = Model::load(test::golden_path("tiny/" + std::string(tiny.name) + ".gguf"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_TRUE((*model)->unused_tensors().empty());

  // Half of the positions are reached as prompt tokens, half as generated ones.
  double worst = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    StepRunner runner(**model, kernel_table(isa), 2, 4, KvDType::kF16);
    FedSequence sequence;
    const auto length = static_cast<size_t>(positions[i]) + 1;
    const size_t generated = i % 2 == 0 ? 0 : std::min<size_t>(length - 1, 5);
    runner.prefill(sequence, std::span(ids).first(length - generated), 128);
    for (size_t j = length - generated; j < length; ++j)
      runner.step({{&sequence, {ids[j]}, Phase::kGenerate}});
    const auto want = test::numbers<float>(golden.at("logits").at(i));
    ASSERT_EQ(want.size(), sequence.logits.size());
    const double scale = root_mean_square(want);
    for (size_t j = 0; j < want.size(); ++j) {
      ASSERT_FALSE(std::isnan(sequence.logits[j]))
          << "position " << positions[i] << ", token " << j;
      worst = std::max(worst, std::abs(static_cast<double>(want[j]) - sequence.logits[j]) / scale);
    }
  }
  RecordProperty("worst", std::to_string(worst));
  EXPECT_LE(worst, isa == Isa::kAmx ? tiny.bf16_tolerance : tiny.tolerance);
}

// The estimate that decides how long a context may be.
TEST_P(TinyModels, StepsTakeNoMoreMemoryThanTheEstimateAndNotMuchLess) {
  const auto& [tiny, isa] = GetParam();
  if (!cpu_supports(isa)) GTEST_SKIP() << "not run: this CPU lacks " << isa_name(isa);
  const auto model = Model::load(test::golden_path(std::string("tiny/") + tiny.name + ".gguf"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const ModelConfig& config = (*model)->config();
  const KernelTable& kernels = *select_kernels(isa_name(isa)).value();
  for (const int num_threads : {1, 3}) {
    Decoder decoder(**model, kernels);
    ThreadPool pool(num_threads);
    for (const int64_t num_rows : {int64_t{1}, int64_t{100}, int64_t{384}}) {
      if (kSlowBuild && works_lane_by_lane(isa) && num_rows > 100) continue;
      SCOPED_TRACE(num_rows);
      const auto kv =
          std::move(KvStore::create(kv_layouts(config, KvDType::kBf16), pages_for(num_rows)))
              .value();
      std::vector<PageId> pages;
      while (std::ssize(pages) < pages_for(num_rows)) pages.push_back(kv->pool().take().value());
      const std::vector<TokenId> tokens(static_cast<size_t>(num_rows), 7);
      const StepSequence sequence{
          .tokens = tokens, .pages = pages, .num_logits = static_cast<int32_t>(num_rows)};
      decoder.run_step({&sequence, 1}, *kv, pool, [](const LogitRows&) {});
      const int64_t estimate =
          step_bytes(config, kernels, {num_rows, num_rows, pool.num_threads()});
      EXPECT_LE(decoder.scratch_bytes(), estimate);
      EXPECT_GE(2 * decoder.scratch_bytes(), estimate);
    }
  }
}

TEST(Decoder, ACancelledStepLeavesOutTheRestOfItsLogits) {
  const auto model = Model::load(test::golden_path("tiny/llama-untied.gguf"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  Decoder decoder(**model, *select_kernels("scalar").value());
  ThreadPool pool(1);
  const auto kv =
      std::move(KvStore::create(kv_layouts((*model)->config(), KvDType::kBf16), 2)).value();
  const std::vector<PageId> pages = {kv->pool().take().value(), kv->pool().take().value()};
  const std::vector<TokenId> tokens(200, 7);
  const StepSequence sequence{.tokens = tokens, .pages = pages, .num_logits = 200};
  std::atomic<bool> cancel{false};
  int64_t num_rows = 0;
  const auto take = [&](const LogitRows& rows) {
    num_rows += rows.num_rows;
    cancel = num_rows >= 100;
  };
  EXPECT_FALSE(decoder.run_step({&sequence, 1}, *kv, pool, take, &cancel));
  EXPECT_GE(num_rows, 100);
  EXPECT_LT(num_rows, 200);
  cancel = false;
  num_rows = -1000;
  EXPECT_TRUE(decoder.run_step({&sequence, 1}, *kv, pool, take, &cancel));
  EXPECT_EQ(num_rows, -800);
}

INSTANTIATE_TEST_SUITE_P(EveryModelOnEveryIsa, TinyModels,
                         testing::Combine(testing::ValuesIn(kTinyModels),
                                          testing::ValuesIn(known_isas().begin(),
                                                            known_isas().end())),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param).name;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_" + std::string(isa_name(std::get<1>(param.param)));
                         });

}  // namespace
}  // namespace winnow
