#include "attention/profile_collector.h"

#include <Eigen/Core>

#include "base/check.h"

namespace winnow {
namespace {

// Every so many tokens' queries count: neighbours are alike.
constexpr int32_t kTokenStride = 7;

using RowMajorFloats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The queries of one KV head's group at every kTokenStride-th position: [rows][head_dim].
RowMajorFloats sampled_queries(const KvLayout& layout, int heads, const AttentionRows& rows,
                               int kv_head) {
  const int group = heads / layout.kv_heads;
  const int32_t first = (rows.begin + kTokenStride - 1) / kTokenStride * kTokenStride - rows.begin;
  const int32_t samples =
      first >= rows.num_tokens ? 0 : (rows.num_tokens - first - 1) / kTokenStride + 1;
  RowMajorFloats queries(int64_t{samples} * group, layout.head_dim);
  for (int32_t i = 0; i < samples; ++i) {
    const int64_t token = first + int64_t{i} * kTokenStride;
    const float* q = rows.q + (token * heads + int64_t{kv_head} * group) * layout.head_dim;
    queries.middleRows(int64_t{i} * group, group) =
        Eigen::Map<const RowMajorFloats>(q, group, layout.head_dim);
  }
  return queries;
}

}  // namespace

ProfileCollector::ProfileCollector(int num_layers) {
  profile_.layers.resize(static_cast<size_t>(num_layers));
}

void ProfileCollector::add_queries(int layer_idx, const KvLayout& layout, int heads,
                                   const AttentionRows& rows) {
  SparseProfile::Layer& layer = profile_.layers[static_cast<size_t>(layer_idx)];
  layer.kv_heads = layout.kv_heads;
  layer.head_dim = layout.head_dim;
  std::vector<float>& moments = layer.moments.queries;
  const int dims = layout.head_dim;
  moments.resize(static_cast<size_t>(layout.kv_heads) * dims * dims);
  for (int kv_head = 0; kv_head < layout.kv_heads; ++kv_head) {
    const RowMajorFloats queries = sampled_queries(layout, heads, rows, kv_head);
    Eigen::Map<RowMajorFloats> sum(moments.data() + int64_t{kv_head} * dims * dims, dims, dims);
    sum.noalias() += queries.transpose() * queries;
  }
}

void ProfileCollector::finish_layer(int layer_idx, const KvLayerView& kv,
                                    std::span<const PageId> pages, int32_t num_tokens) {
  SketchMoments& moments = profile_.layers[static_cast<size_t>(layer_idx)].moments;
  CHECK(!moments.queries.empty());
  const int32_t whole = num_tokens / kv.layout.block_tokens * kv.layout.block_tokens;
  moments.keys.clear();
  for (int kv_head = 0; kv_head < kv.layout.kv_heads; ++kv_head) {
    for (const double value : centred_key_moment(kv, pages, kv_head, whole)) {
      moments.keys.push_back(static_cast<float>(value));
    }
  }
}

}  // namespace winnow
