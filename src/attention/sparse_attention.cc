#include "attention/sparse_attention.h"

#include <algorithm>

#include "attention/sparse_call.h"
#include "attention/v2_tile.h"
#include "attention/winnow_tile.h"
#include "base/check.h"

namespace winnow {
namespace {

// How the rows are cut into tiles.
struct Tiling {
  int32_t positions = kScoreRows;  // of a tile, at multiples of it
  int group = 1;                   // query heads of a tile

  static Tiling of(SparseRuleKind kind, int group) {
    if (kind == SparseRuleKind::kWinnow) return {};
    return {dense_tile_positions(group), group};
  }
  int64_t lanes() const { return int64_t{(positions + kScoreRows - 1) / kScoreRows} * group; }
};

// One thread's scratch memory; without memory it only tells how much it takes.
SparseScratch thread_scratch(const KernelTable& kernels, const KvLayout& layout,
                             const Tiling& tiling, int64_t num_tokens, std::byte* memory) {
  const auto max_rows = static_cast<int32_t>(tiling.positions * tiling.group);
  return {memory, kernels.attention->scratch_bytes(max_rows, layout.head_dim),
          kernels.blocks->scratch_bytes(layout.head_dim, layout.sketch_rank),
          pages_for(num_tokens) * layout.blocks(), tiling.lanes()};
}

}  // namespace

int64_t prompt_scratch_bytes(const KernelTable& kernels, const KvLayout& layout, int heads,
                             int64_t num_tokens, int num_threads) {
  int64_t most = 0;
  for (const SparseRuleKind kind : {SparseRuleKind::kWinnow, SparseRuleKind::kV2}) {
    // The tiles of the latter are those of dense attention.
    const Tiling tiling = Tiling::of(kind, heads / layout.kv_heads);
    most = std::max(most, thread_scratch(kernels, layout, tiling, num_tokens, nullptr).bytes);
  }
  return most * num_threads;
}

void sparse_prompt_attention(const KernelTable& kernels, const AttentionShape& shape,
                             const KvLayerView& kv, const AttentionRows& rows,
                             const SparseLayer& sparse, ThreadPool& pool, AttentionScratch& scratch,
                             AttentionStats& stats) {
  const SparseCall call{kernels, shape, kv, rows, sparse};
  const KvLayout& layout = kv.layout;
  CHECK(shape.window == 0 && layout.block_tokens % kStepTokens == 0);
  CHECK(sparse.rule->kind == SparseRuleKind::kV2 || sparse.basis != nullptr ||
        sparse.given != nullptr);
  CHECK(std::ssize(rows.pages) * kPageTokens >= call.end());
  if (rows.num_tokens == 0) return;
  const Tiling tiling = Tiling::of(sparse.rule->kind, call.group());
  const auto arrange = [&](std::byte* memory) {
    return thread_scratch(kernels, layout, tiling, call.end(), memory);
  };
  const int64_t thread_bytes = arrange(nullptr).bytes;
  std::byte* memory = scratch.tiles.ensure(static_cast<size_t>(thread_bytes * pool.num_threads()));
  scratch.thread_stats.assign(static_cast<size_t>(pool.num_threads()), {});

  const int32_t first_tile = rows.begin / tiling.positions;
  const int64_t num_tiles = (call.end() - 1) / tiling.positions - first_tile + 1;
  const int heads = shape.heads / tiling.group;
  pool.run(num_tiles * heads, [&](int64_t task_idx, int thread_idx) {
    // Late tiles see the most keys: started first, they leave no thread alone at the end.
    const auto tile_idx = static_cast<int32_t>(num_tiles - 1 - task_idx / heads) + first_tile;
    const TileRows tile{.begin = std::max(rows.begin, tile_idx * tiling.positions),
                        .end = std::min(call.end(), (tile_idx + 1) * tiling.positions),
                        .head = static_cast<int>(task_idx % heads) * tiling.group,
                        .group = tiling.group};
    const SparseScratch tile_scratch = arrange(memory + thread_idx * thread_bytes);
    AttentionStats& thread_stats = scratch.thread_stats[static_cast<size_t>(thread_idx)];
    if (sparse.rule->kind == SparseRuleKind::kWinnow) {
      run_winnow_tile(call, tile, tile_scratch, thread_stats);
    } else {
      run_v2_tile(call, tile, tile_scratch, thread_stats);
    }
  });
  for (const AttentionStats& thread_stats : scratch.thread_stats) stats.add(thread_stats);
}

}  // namespace winnow
