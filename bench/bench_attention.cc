// Attention of one thread: prompts in operations per second, generated tokens in bytes of K and V
// read per second, both also as a share of what the machine can do. Arguments: head_dim, group,
// context. WINNOW_ISA picks the level.
#include <cmath>
#include <random>
#include <vector>

#include "attention/attention.h"
#include "bench/share_of_peak.h"

namespace winnow {
namespace {

// What the level multiplies queries and keys in (docs/kernels.md).
const char* product_number(Isa isa, KvDType dtype) {
  const bool wide = isa == Isa::kAvx512Bf16 || isa == Isa::kAmx;
  return wide && dtype == KvDType::kBf16 ? "bf16" : "f32";
}

// One KV head with random contents for `context` tokens.
struct Sequence {
  Sequence(int head_dim, int group, int context, KvDType dtype) : heads(group) {
    const KvLayout layout{.kv_heads = 1, .head_dim = head_dim, .dtype = dtype};
    const int num_pages = (context + kPageTokens - 1) / kPageTokens;
    store = std::move(KvStore::create(std::span(&layout, 1), num_pages)).value();
    for (int i = 0; i < num_pages; ++i) pages.push_back(*store->pool().take());
    std::vector<float> kv(static_cast<size_t>(context) * head_dim);
    fill(kv);
    write_kv(bench::chosen_kernels(), store->layer(0), pages, 0, context, kv.data(), kv.data());
  }

  void fill(std::vector<float>& values) {
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(rng);
  }
  AttentionShape shape(int head_dim) const {
    return {.heads = heads, .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
  }

  int heads;
  std::mt19937 rng{1};
  std::unique_ptr<KvStore> store;
  std::vector<PageId> pages;
};

// The last 256 positions of the context.
void BM_Prompt(benchmark::State& state, KvDType dtype) {
  const auto head_dim = static_cast<int>(state.range(0));
  const auto group = static_cast<int>(state.range(1));
  const auto context = static_cast<int>(state.range(2));
  constexpr int kTokens = 256;
  Sequence sequence(head_dim, group, context, dtype);
  std::vector<float> q(static_cast<size_t>(kTokens) * group * head_dim), out(q.size());
  sequence.fill(q);
  ThreadPool pool(1);
  AttentionScratch scratch;
  AttentionStats stats;
  const AttentionRows rows{context - kTokens, kTokens, q.data(), out.data(), sequence.pages};
  for (auto _ : state) {
    prompt_attention(bench::chosen_kernels(), sequence.shape(head_dim), sequence.store->layer(0),
                     rows, pool, scratch, stats);
  }
  const double pairs = kTokens * (context - kTokens / 2.0) * group;
  const Isa isa = bench::chosen_kernels().isa;
  bench::report_operations(
      state, pairs * 4 * head_dim * static_cast<double>(state.iterations()),
      bench::MachinePeaks::of_threads(1).operations_per_second(isa, product_number(isa, dtype)));
}

void BM_Generate(benchmark::State& state, KvDType dtype) {
  const auto head_dim = static_cast<int>(state.range(0));
  const auto group = static_cast<int>(state.range(1));
  const auto context = static_cast<int>(state.range(2));
  Sequence sequence(head_dim, group, context, dtype);
  std::vector<float> q(static_cast<size_t>(group * head_dim)), out(q.size());
  sequence.fill(q);
  ThreadPool pool(1);
  AttentionScratch scratch;
  AttentionStats stats;
  const AttentionRows rows{context - 1, 1, q.data(), out.data(), sequence.pages};
  for (auto _ : state) {
    generate_attention(bench::chosen_kernels(), sequence.shape(head_dim), sequence.store->layer(0),
                       std::span(&rows, 1), pool, scratch);
  }
  bench::report_bytes(state, static_cast<double>(state.iterations() * context) * head_dim * 4,
                      bench::MachinePeaks::of_threads(1).bytes_per_second());
}

void prompt_arguments(benchmark::internal::Benchmark* bench) {
  bench->Args({64, 3, 4096})->Args({64, 7, 8192})->Args({64, 1, 4096})->Args({128, 6, 4096});
  bench->Args({256, 4, 4096});
}

void generate_arguments(benchmark::internal::Benchmark* bench) {
  bench->Args({64, 1, 8192})->Args({64, 3, 8192})->Args({64, 7, 8192})->Args({64, 7, 262144});
  bench->Args({256, 4, 8192});
}

BENCHMARK_CAPTURE(BM_Prompt, bf16, KvDType::kBf16)->Apply(prompt_arguments);
BENCHMARK_CAPTURE(BM_Prompt, f16, KvDType::kF16)->Apply(prompt_arguments);
BENCHMARK_CAPTURE(BM_Generate, bf16, KvDType::kBf16)->Apply(generate_arguments);
BENCHMARK_CAPTURE(BM_Generate, f16, KvDType::kF16)->Apply(generate_arguments);

}  // namespace
}  // namespace winnow

BENCHMARK_MAIN();
