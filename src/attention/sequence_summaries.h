// SequenceSummaries: which pages of one sequence have summaries, layer by layer, and the basis that
// its keys are sketched in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention_stats.h"
#include "attention/sketch_basis.h"
#include "attention/sparse_profile.h"
#include "attention/sparse_rule.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "kv/kv_store.h"

namespace winnow {

// A basis depends on the sequence's first tokens only, and is kept as long as they are.
class SequenceSummaries {
 public:
  explicit SequenceSummaries(int num_layers) : layers_(static_cast<size_t>(num_layers)) {}

  // Gives every full page of the first `num_tokens` tokens, whose K and V are written, its
  // summaries, and returns the layer's basis; null for a rule without sketches. Requires
  // num_tokens >= rule.dense_tokens. The time counts as selection.
  const SketchBasis* update(int layer_idx, const KvLayerView& kv, std::span<const PageId> pages,
                            int32_t num_tokens, const SparseRule& rule,
                            const SparseProfile::Layer* profile, ThreadPool& pool,
                            AttentionStats& stats);
  // The first pages were given their summaries by a sequence with the same first tokens and rule.
  // Requires that nothing is summarized yet.
  void adopt(int32_t num_pages);
  // Pages that have their summaries in every layer that the rule applies to.
  int32_t num_pages() const;
  // Forgets what depends on tokens from num_tokens on.
  void truncate(int64_t num_tokens);

 private:
  struct Layer {
    std::optional<SketchBasis> basis;
    int32_t basis_tokens = 0;
    int32_t num_pages = 0;
  };
  std::vector<Layer> layers_;
};

}  // namespace winnow
