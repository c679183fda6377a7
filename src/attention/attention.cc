#include "attention/attention.h"

#include <algorithm>
#include <bit>

#include "attention/block_visits.h"
#include "attention/piece_states.h"
#include "base/check.h"
#include "kernels/attention_kernels.h"

namespace winnow {
namespace {

// Packed rows of a prompt tile: enough that converting a block of K and V once per tile costs
// little beside its products, few enough that the tile's logits stay in the second-level cache.
constexpr int kMaxTileRows = 128;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

void check_shape(const AttentionShape& shape, const KvLayout& layout) {
  CHECK(layout.head_dim >= 16 && layout.head_dim <= 256 && layout.head_dim % 16 == 0);
  CHECK(shape.heads > 0 && shape.heads % layout.kv_heads == 0);
  CHECK(shape.window >= 0);
}

// The tile of query positions [begin, begin + queries) of one KV head.
AttentionTile make_tile(const AttentionShape& shape, const KvLayout& layout,
                        const AttentionRows& rows, int kv_head, int32_t begin, int32_t queries) {
  const int32_t group = shape.heads / layout.kv_heads;
  const int64_t query_stride = int64_t{shape.heads} * layout.head_dim;
  const int64_t offset =
      (begin - rows.begin) * query_stride + int64_t{kv_head} * group * layout.head_dim;
  return {.q = rows.q + offset,
          .out = rows.out + offset,
          .query_stride = query_stride,
          .queries = queries,
          .group = group,
          .head_dim = layout.head_dim,
          .first_position = begin,
          .window = shape.window,
          .dtype = layout.dtype,
          .scale = shape.scale,
          .soft_cap = shape.soft_cap};
}

int32_t first_visible(const AttentionShape& shape, int32_t position) {
  return shape.window > 0 ? std::max(0, position - shape.window + 1) : 0;
}

// Visits the pages that hold tokens [begin, end), whole and in ascending order.
void visit_pages(const KernelTable& kernels, const KvLayerView& kv, std::span<const PageId> pages,
                 int kv_head, const AttentionTile& tile, int32_t begin, int32_t end) {
  BlockVisits visits(*kernels.attention, tile);
  for (int32_t page_idx = begin / kPageTokens; page_idx * kPageTokens < end; ++page_idx) {
    const std::byte* page = kv.page(pages[static_cast<size_t>(page_idx)]);
    visits.add({.k = page + kv.layout.k_offset(kv_head),
                .v = page + kv.layout.v_offset(kv_head),
                .position = page_idx * kPageTokens});
  }
}

// Room for one tile per thread, each on its own cache lines.
class TileScratch {
 public:
  TileScratch(const KernelTable& kernels, int64_t max_rows, int head_dim, int num_threads,
              AttentionScratch& scratch)
      : tile_bytes_(
            round_up(kernels.attention->scratch_bytes(static_cast<int32_t>(max_rows), head_dim),
                     kCacheLineBytes)),
        data_(scratch.tiles.ensure(static_cast<size_t>(tile_bytes_ * num_threads))) {}

  std::byte* of_thread(int thread_idx) const { return data_ + thread_idx * tile_bytes_; }

 private:
  int64_t tile_bytes_;
  std::byte* data_;
};

// One part of a sequence's keys for one KV head: what a task of generate_attention works on.
struct PieceTask {
  int64_t sequence_idx = 0;
  int kv_head = 0;
  int32_t piece_idx = 0;
};

// How the keys of all sequences are cut. Pieces stand at multiples of kPieceTokens.
class PiecePlan {
 public:
  PiecePlan(const AttentionShape& shape, const KvLayout& layout,
            std::span<const AttentionRows> sequences)
      : shape_(shape), layout_(layout), sequences_(sequences) {
    for (const AttentionRows& rows : sequences) {
      max_pieces_ = std::max(max_pieces_, last_piece(rows) - first_piece(rows) + 1);
    }
  }

  int32_t first_piece(const AttentionRows& rows) const {
    return first_visible(shape_, rows.begin) / kPieceTokens;
  }
  int32_t last_piece(const AttentionRows& rows) const { return rows.begin / kPieceTokens; }

  int32_t max_pieces() const { return max_pieces_; }
  int64_t num_heads() const { return static_cast<int64_t>(sequences_.size()) * layout_.kv_heads; }
  // Tasks of shorter sequences are partly empty.
  int64_t num_tasks() const { return num_heads() * max_pieces_; }
  PieceTask task(int64_t task_idx) const {
    const int64_t head_idx = task_idx / max_pieces_;
    return {head_idx / layout_.kv_heads, static_cast<int>(head_idx % layout_.kv_heads),
            static_cast<int32_t>(task_idx % max_pieces_)};
  }

 private:
  const AttentionShape& shape_;
  const KvLayout& layout_;
  std::span<const AttentionRows> sequences_;
  int32_t max_pieces_ = 0;
};

}  // namespace

int32_t dense_tile_positions(int group) {
  return static_cast<int32_t>(
      std::bit_floor(static_cast<unsigned>(std::max(1, kMaxTileRows / group))));
}

void write_kv(const KernelTable& kernels, const KvLayerView& kv, std::span<const PageId> pages,
              int32_t begin, int32_t num_tokens, const float* k, const float* v) {
  const KvLayout& layout = kv.layout;
  const int64_t stride = int64_t{layout.kv_heads} * layout.head_dim;
  CHECK(begin >= 0 && std::ssize(pages) * kPageTokens >= int64_t{begin} + num_tokens);
  for (int32_t done = 0; done < num_tokens;) {
    const int32_t position = begin + done;
    const int32_t first_token = position % kPageTokens;
    const int32_t count = std::min(num_tokens - done, kPageTokens - first_token);
    std::byte* page = kv.page(pages[static_cast<size_t>(position / kPageTokens)]);
    for (int kv_head = 0; kv_head < layout.kv_heads; ++kv_head) {
      const int64_t offset = done * stride + int64_t{kv_head} * layout.head_dim;
      kernels.attention->store({.k = k + offset,
                                .v = v + offset,
                                .stride = stride,
                                .first_token = first_token,
                                .num_tokens = count,
                                .head_dim = layout.head_dim,
                                .dtype = layout.dtype,
                                .k_page = page + layout.k_offset(kv_head),
                                .v_page = page + layout.v_offset(kv_head)});
    }
    done += count;
  }
}

void prompt_attention(const KernelTable& kernels, const AttentionShape& shape,
                      const KvLayerView& kv, const AttentionRows& rows, ThreadPool& pool,
                      AttentionScratch& scratch, AttentionStats& stats) {
  const KvLayout& layout = kv.layout;
  check_shape(shape, layout);
  if (rows.num_tokens == 0) return;
  const PartTimer timer;
  const int32_t end = rows.begin + rows.num_tokens;
  CHECK(std::ssize(rows.pages) * kPageTokens >= end);
  const int group = shape.heads / layout.kv_heads;
  const int32_t tile_q = dense_tile_positions(group);
  const int32_t first_tile = rows.begin / tile_q;
  const int64_t num_tiles = (end - 1) / tile_q - first_tile + 1;
  const TileScratch tiles(kernels, int64_t{tile_q} * group, layout.head_dim, pool.num_threads(),
                          scratch);
  pool.run(num_tiles * layout.kv_heads, [&](int64_t task_idx, int thread_idx) {
    // Late tiles see the most keys: started first, they leave no thread alone at the end.
    const auto tile_idx =
        static_cast<int32_t>(num_tiles - 1 - task_idx / layout.kv_heads) + first_tile;
    const auto kv_head = static_cast<int>(task_idx % layout.kv_heads);
    const int32_t tile_begin = std::max(rows.begin, tile_idx * tile_q);
    const int32_t tile_end = std::min(end, (tile_idx + 1) * tile_q);
    AttentionTile tile = make_tile(shape, layout, rows, kv_head, tile_begin, tile_end - tile_begin);
    tile.scratch = tiles.of_thread(thread_idx);
    kernels.attention->begin(tile);
    visit_pages(kernels, kv, rows.pages, kv_head, tile, first_visible(shape, tile_begin), tile_end);
    kernels.attention->finish(tile);
  });
  const int64_t pairs = pairs_seen(rows.begin, end) * shape.heads;
  stats.causal_pairs += pairs;
  stats.kept_pairs += pairs;
  stats.attend_s += timer.seconds() * pool.num_threads();
}

void generate_attention(const KernelTable& kernels, const AttentionShape& shape,
                        const KvLayerView& kv, std::span<const AttentionRows> sequences,
                        ThreadPool& pool, AttentionScratch& scratch) {
  const KvLayout& layout = kv.layout;
  check_shape(shape, layout);
  for (const AttentionRows& rows : sequences) {
    CHECK(rows.num_tokens == 1 && std::ssize(rows.pages) * kPageTokens > rows.begin);
  }
  if (sequences.empty()) return;
  const int group = shape.heads / layout.kv_heads;
  const PiecePlan plan(shape, layout, sequences);
  const TileScratch tiles(kernels, group, layout.head_dim, pool.num_threads(), scratch);
  const PieceStates states{
      scratch.pieces.ensure(PieceStates::size(plan.num_tasks(), group, layout.head_dim)), group,
      layout.head_dim};

  pool.run(plan.num_tasks(), [&](int64_t task_idx, int thread_idx) {
    const PieceTask task = plan.task(task_idx);
    const AttentionRows& rows = sequences[static_cast<size_t>(task.sequence_idx)];
    const int32_t piece_begin = (plan.first_piece(rows) + task.piece_idx) * kPieceTokens;
    if (piece_begin > rows.begin) return;
    AttentionTile tile = make_tile(shape, layout, rows, task.kv_head, rows.begin, 1);
    tile.scratch = tiles.of_thread(thread_idx);
    kernels.attention->begin(tile);
    visit_pages(kernels, kv, rows.pages, task.kv_head, tile,
                std::max(piece_begin, first_visible(shape, rows.begin)),
                std::min(piece_begin + kPieceTokens, rows.begin + 1));
    if (plan.max_pieces() == 1) {
      kernels.attention->finish(tile);
    } else {
      states.keep(task_idx, kernels.attention->state(tile));
    }
  });
  if (plan.max_pieces() == 1) return;

  pool.run(plan.num_heads(), [&](int64_t head_idx, int) {
    const int64_t first_task = head_idx * plan.max_pieces();
    const PieceTask task = plan.task(first_task);
    const AttentionRows& rows = sequences[static_cast<size_t>(task.sequence_idx)];
    const int32_t num_pieces = plan.last_piece(rows) - plan.first_piece(rows) + 1;
    float* out = rows.out + int64_t{task.kv_head} * group * layout.head_dim;
    states.merge(first_task, first_task + num_pieces, out);
  });
}

}  // namespace winnow
