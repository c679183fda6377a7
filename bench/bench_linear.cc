// Linear layers by weight type and shape: prompt panels in operations per second, generated tokens
// in weight bytes per second, both also as a share of what the machine can do. WINNOW_ISA forces a
// level; a name ends in the number of threads.
#include <random>
#include <string>
#include <vector>

#include "bench/share_of_peak.h"
#include "kernels/linear.h"
#include "support/random_weight.h"

namespace winnow {
namespace {

struct Shape {
  int64_t outputs;
  int64_t cols;
};

// What the level multiplies prompt rows in (docs/kernels.md).
const char* prompt_number(Isa isa, DType dtype) {
  if (isa == Isa::kAmx && dtype != DType::kF32) return "bf16";
  const bool plain = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  return plain ? "f32" : "int16";
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
    linear(bench::chosen_kernels(), phase, {x.data(), rows, shape.cols, shape.cols},
           std::span(&output, 1), pool, scratch);
    copy = (copy + 1) % copies;
  }
  const auto runs = static_cast<double>(state.iterations());
  const auto& peaks = bench::MachinePeaks::of_threads(threads);
  if (phase == Phase::kPrompt) {
    const Isa isa = bench::chosen_kernels().isa;
    bench::report_operations(state,
                             runs * 2 * static_cast<double>(rows * shape.outputs * shape.cols),
                             peaks.operations_per_second(isa, prompt_number(isa, dtype)));
  } else {
    bench::report_bytes(state, runs * static_cast<double>(bytes), peaks.bytes_per_second());
  }
}

void register_all() {
  // Of SmolLM2, Gemma 3 270M, Qwen2.5 0.5B and 1.5B.
  constexpr Shape kShapes[] = {{576, 576},  {1536, 576}, {576, 1536},  {2048, 640}, {640, 2048},
                               {4864, 896}, {896, 4864}, {8960, 1536}, {1536, 8960}};
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
        add("generate16", Phase::kGenerate, 16);
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
