// ProfileCollector: gathers a SparseProfile's second moments while a text runs as a dense prompt.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/sparse_profile.h"
#include "base/ids.h"
#include "kv/kv_store.h"

namespace winnow {

class ProfileCollector {
 public:
  explicit ProfileCollector(int num_layers);

  // Takes the queries of a layer's next tokens.
  void add_queries(int layer_idx, const KvLayout& layout, int heads, const AttentionRows& rows);
  // Takes the keys of a layer's first `num_tokens` tokens, and ends it. Requires that queries were
  // added.
  void finish_layer(int layer_idx, const KvLayerView& kv, std::span<const PageId> pages,
                    int32_t num_tokens);
  // Layers that were not finished stay empty.
  SparseProfile take() { return std::move(profile_); }

 private:
  SparseProfile profile_;
};

}  // namespace winnow
