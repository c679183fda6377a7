// SketchBasis: the directions in which the keys of one layer are sketched.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/kv_store.h"

namespace winnow {

// Second moments of a layer, means over tokens, from texts other than the prompt. Keys are centred
// on their block's mean.
struct SketchMoments {
  std::vector<float> keys;     // [kv_heads][head_dim][head_dim]
  std::vector<float> queries;  // likewise, over the heads of the group
};

// The inner product of a query's and a key's projections approximates q . (k - mean).
struct SketchBasis {
  int head_dim = 0;
  int rank = 0;
  std::vector<float> keys = {};     // [kv_heads][head_dim][rank]
  std::vector<float> queries = {};  // likewise

  int64_t head_floats() const { return int64_t{head_dim} * rank; }
  const float* keys_of(int kv_head) const { return keys.data() + kv_head * head_floats(); }
  const float* queries_of(int kv_head) const { return queries.data() + kv_head * head_floats(); }
};

// Adds up the outer products of one head's keys at [0, num_tokens), each centred on its block's
// mean: [head_dim][head_dim]. num_tokens is a multiple of the block.
std::vector<double> centred_key_moment(const KvLayerView& kv, std::span<const PageId> pages,
                                       int kv_head, int32_t num_tokens);

// The leading directions of the centred keys of one head at [0, num_tokens), to which `prior` adds
// as much weight of other texts, in the metric of its queries. Without a prior, of the prompt's
// keys alone in the plain metric. Depends on those tokens only.
void fit_head(const KvLayerView& kv, std::span<const PageId> pages, int32_t num_tokens,
              const SketchMoments* prior, int kv_head, SketchBasis& basis);
// An unfitted basis for every head of the layer.
SketchBasis empty_basis(const KvLayout& layout);

}  // namespace winnow
