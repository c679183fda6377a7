// Linear layers by weight type and shape: prompt panels in multiply-adds per second, generated
// tokens in weight bytes per second. WINNOW_ISA forces a level; the second argument of each
// benchmark is the number of threads.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/linear.h"
#include "support/random_weight.h"

namespace winnow {
namespace {

struct Shape {
  int64_t outputs;
  int64_t cols;
};

const KernelTable& kernels() {
  const char* forced = std::getenv("WINNOW_ISA");
  static const KernelTable& table = *select_kernels(forced == nullptr ? "" : forced).value();
  return table;
}

void run_linear(benchmark::State& state, DType dtype, Phase phase, int64_t rows, Shape shape,
                int threads) {
  // Enough copies of the weight that none is found in the cache when its turn comes again.
  constexpr int64_t kGenerateBytes = 256 << 20;
  const int64_t bytes = dtype_bytes(dtype, shape.cols) * shape.outputs;
  const int64_t copies = phase == Phase::kPrompt ? 1 : std::max<int64_t>(1, kGenerateBytes / bytes);
  std::mt19937 rng(1);
  std::vector<std::byte> weight(static_cast<size_t>(bytes));
  fill_random_weight(dtype, weight, rng);
  weight.resize(static_cast<size_t>(bytes * copies));
  for (int64_t i = 1; i < copies; ++i)
    std::copy_n(weight.begin(), bytes, weight.begin() + i * bytes);
  std::vector<float> x(static_cast<size_t>(rows * shape.cols), 0.5F);
  for (float& value : x) value = std::normal_distribution<float>()(rng);
  AlignedBuffer<float> y(static_cast<size_t>(rows * shape.outputs));
  ThreadPool pool(threads);
  LinearScratch scratch;
  int64_t copy = 0;
  for (auto _ : state) {
    const WeightView view{dtype, shape.outputs, shape.cols, weight.data() + copy * bytes};
    const LinearOutput output{view, nullptr, y.data(), shape.outputs};
    linear(kernels(), phase, {x.data(), rows, shape.cols, shape.cols}, std::span(&output, 1), pool,
           scratch);
    copy = (copy + 1) % copies;
  }
  const auto runs = static_cast<double>(state.iterations());
  using Counter = benchmark::Counter;
  state.counters["mul_add/s"] =
      Counter(runs * static_cast<double>(rows * shape.outputs * shape.cols), Counter::kIsRate);
  state.counters["weight_B/s"] = Counter(runs * static_cast<double>(bytes), Counter::kIsRate);
}

void register_all() {
  constexpr Shape kShapes[] = {{576, 576}, {1536, 576}, {896, 4864}, {4864, 896}};
  for (const DType dtype : kAllDTypes) {
    for (const Shape shape : kShapes) {
      if (shape.cols % dtype_info(dtype).group_size != 0) continue;
      for (const int threads : {1, 2}) {
        const std::string tail = std::string(dtype_info(dtype).name) + "/" +
                                 std::to_string(shape.outputs) + "x" + std::to_string(shape.cols) +
                                 "/" + std::to_string(threads) + "t";
        const auto add = [&](const std::string& name, Phase phase, int64_t rows) {
          benchmark::RegisterBenchmark((name + "/" + tail).c_str(), [=](benchmark::State& state) {
            run_linear(state, dtype, phase, rows, shape, threads);
          })->UseRealTime();
        };
        add("prompt512", Phase::kPrompt, 512);
        add("generate1", Phase::kGenerate, 1);
        add("generate8", Phase::kGenerate, 8);
      }
    }
  }
}

}  // namespace
}  // namespace winnow

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  winnow::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
