#include "attention/sequence_summaries.h"

#include <algorithm>

#include "attention/page_summaries.h"
#include "base/check.h"

namespace winnow {
namespace {

// Keys that a basis is fitted on at most: more of them change little.
constexpr int32_t kBasisTokens = 2048;

SketchBasis fit_basis(const KvLayerView& kv, std::span<const PageId> pages, int32_t num_tokens,
                      const SparseProfile::Layer* profile, ThreadPool& pool) {
  SketchBasis basis = empty_basis(kv.layout);
  const SketchMoments* prior =
      profile == nullptr || profile->moments.keys.empty() ? nullptr : &profile->moments;
  pool.run(kv.layout.kv_heads, [&](int64_t kv_head, int) {
    fit_head(kv, pages, num_tokens, prior, static_cast<int>(kv_head), basis);
  });
  return basis;
}

}  // namespace

const SketchBasis* SequenceSummaries::update(int layer_idx, const KvLayerView& kv,
                                             std::span<const PageId> pages, int32_t num_tokens,
                                             const SparseRule& rule,
                                             const SparseProfile::Layer* profile, ThreadPool& pool,
                                             AttentionStats& stats) {
  Layer& layer = layers_[static_cast<size_t>(layer_idx)];
  const PartTimer timer;
  if (rule.kind == SparseRuleKind::kWinnow && !layer.basis) {
    CHECK(num_tokens >= rule.dense_tokens);
    layer.basis_tokens = std::min(rule.dense_tokens, kBasisTokens);
    layer.basis = fit_basis(kv, pages, layer.basis_tokens, profile, pool);
  }
  const int32_t full_pages = num_tokens / kPageTokens;
  const SketchBasis* basis = layer.basis ? &*layer.basis : nullptr;
  if (layer.num_pages < full_pages) {
    summarize_pages(kv, pages, layer.num_pages, full_pages, basis, pool);
    layer.num_pages = full_pages;
  }
  stats.select_s += timer.seconds() * pool.num_threads();
  return basis;
}

void SequenceSummaries::adopt(int32_t num_pages) {
  for (Layer& layer : layers_) layer.num_pages = num_pages;
}

int32_t SequenceSummaries::num_pages() const {
  int32_t most = 0;
  for (const Layer& layer : layers_) most = std::max(most, layer.num_pages);
  return most;
}

void SequenceSummaries::truncate(int64_t num_tokens) {
  for (Layer& layer : layers_) {
    layer.num_pages =
        static_cast<int32_t>(std::min<int64_t>(layer.num_pages, num_tokens / kPageTokens));
    if (num_tokens < layer.basis_tokens) layer = {};
  }
}

}  // namespace winnow
