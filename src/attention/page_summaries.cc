#include "attention/page_summaries.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "tensor/half.h"

namespace winnow {
namespace {

constexpr int kMaxHeadDim = 256;
constexpr int kMaxSketchRank = 64;

struct PageHead {
  const KvLayout& layout;
  std::byte* page;
  int kv_head;

  const uint16_t* k() const {
    return reinterpret_cast<const uint16_t*>(page + layout.k_offset(kv_head));
  }
  const uint16_t* v() const {
    return reinterpret_cast<const uint16_t*>(page + layout.v_offset(kv_head));
  }
  float* k_mean(int block) const {
    return reinterpret_cast<float*>(page + layout.means_offset(kv_head)) +
           int64_t{block} * layout.head_dim;
  }
  float* v_mean(int block) const { return k_mean(layout.blocks() + block); }
  uint8_t* sketch(int token) const {
    return reinterpret_cast<uint8_t*>(page + layout.sketch_offset(kv_head)) +
           int64_t{token} * layout.sketch_rank;
  }
  float* sketch_scales() const { return reinterpret_cast<float*>(sketch(kPageTokens)); }
};

// One block's keys as floats: [block_tokens][head_dim].
void read_keys(const PageHead& head, int block, float* keys) {
  const KvLayout& layout = head.layout;
  const int first = block * layout.block_tokens;
  const uint16_t* from = head.k() + layout.k_index(first, 0);
  for (int group = 0; group < layout.block_tokens; group += kKvLanes) {
    for (int dim = 0; dim < layout.head_dim; dim += 2) {
      for (int lane = 0; lane < kKvLanes; ++lane) {
        float* key = keys + int64_t{group + lane} * layout.head_dim + dim;
        key[0] = half_to_float(layout.dtype, *from++);
        key[1] = half_to_float(layout.dtype, *from++);
      }
    }
  }
}

void write_k_mean(const PageHead& head, int block, const float* keys) {
  const KvLayout& layout = head.layout;
  float* mean = head.k_mean(block);
  std::fill_n(mean, layout.head_dim, 0.0F);
  for (int token = 0; token < layout.block_tokens; ++token) {
    const float* key = keys + int64_t{token} * layout.head_dim;
    for (int dim = 0; dim < layout.head_dim; ++dim) mean[dim] += key[dim];
  }
  const float share = 1.0F / static_cast<float>(layout.block_tokens);
  for (int dim = 0; dim < layout.head_dim; ++dim) mean[dim] *= share;
}

void write_v_mean(const PageHead& head, int block) {
  const KvLayout& layout = head.layout;
  const int first = block * layout.block_tokens;
  const float share = 1.0F / static_cast<float>(layout.block_tokens);
  float* mean = head.v_mean(block);
  for (int group = 0; group < layout.head_dim; group += kKvLanes) {
    const uint16_t* from = head.v() + layout.v_index(first, group);
    float sums[kKvLanes] = {};
    for (int pair = 0; pair < layout.block_tokens / 2; ++pair) {
      for (float& sum : sums) {
        sum += half_to_float(layout.dtype, from[0]) + half_to_float(layout.dtype, from[1]);
        from += 2;
      }
    }
    for (int lane = 0; lane < kKvLanes; ++lane) mean[group + lane] = sums[lane] * share;
  }
}

// coordinates += (key - mean) . projection, [rank], for a block's keys.
void project_keys(const PageHead& head, int block, const float* keys, const float* projection,
                  float* coordinates) {
  const KvLayout& layout = head.layout;
  const float* mean = head.k_mean(block);
  for (int token = 0; token < layout.block_tokens; ++token) {
    const float* key = keys + int64_t{token} * layout.head_dim;
    float* out = coordinates + int64_t{token} * layout.sketch_rank;
    for (int dim = 0; dim < layout.head_dim; ++dim) {
      const float centred = key[dim] - mean[dim];
      const float* row = projection + int64_t{dim} * layout.sketch_rank;
      for (int i = 0; i < layout.sketch_rank; ++i) out[i] += centred * row[i];
    }
  }
}

// A block whose keys are not finite gets a NaN scale: its scores then keep every block.
void write_sketches(const PageHead& head, int block, const float* keys, const float* projection) {
  const KvLayout& layout = head.layout;
  const int count = layout.block_tokens * layout.sketch_rank;
  float coordinates[kPageTokens * kMaxSketchRank];
  std::fill_n(coordinates, count, 0.0F);
  project_keys(head, block, keys, projection, coordinates);
  float largest = 0;
  for (int i = 0; i < count; ++i) {
    const float size = std::abs(coordinates[i]);
    largest = size <= largest ? largest : size;
  }
  const bool finite = largest <= std::numeric_limits<float>::max();
  const float step = std::max(largest, 1e-30F) / 127;
  uint8_t* sketches = head.sketch(block * layout.block_tokens);
  for (int i = 0; i < count; ++i) {
    const float number = finite ? std::nearbyint(coordinates[i] / step) : 0;
    sketches[i] = static_cast<uint8_t>(static_cast<int>(number) + 128);
  }
  head.sketch_scales()[block] = finite ? step : std::numeric_limits<float>::quiet_NaN();
}

void summarize_block(const PageHead& head, int block, const SketchBasis* basis) {
  float keys[kPageTokens * kMaxHeadDim];
  read_keys(head, block, keys);
  write_k_mean(head, block, keys);
  write_v_mean(head, block);
  if (basis != nullptr) write_sketches(head, block, keys, basis->keys_of(head.kv_head));
}

}  // namespace

void summarize_pages(const KvLayerView& kv, std::span<const PageId> pages, int32_t first_page,
                     int32_t end_page, const SketchBasis* basis, ThreadPool& pool) {
  const KvLayout& layout = kv.layout;
  CHECK(first_page >= 0 && std::ssize(pages) >= end_page);
  CHECK(layout.head_dim <= kMaxHeadDim && layout.sketch_rank <= kMaxSketchRank);
  const int64_t num_heads = int64_t{std::max(0, end_page - first_page)} * layout.kv_heads;
  pool.run(num_heads * layout.blocks(), [&](int64_t task_idx, int) {
    const auto block = static_cast<int>(task_idx % layout.blocks());
    const int64_t head_idx = task_idx / layout.blocks();
    const auto page_idx = static_cast<size_t>(first_page + head_idx / layout.kv_heads);
    summarize_block(
        {layout, kv.page(pages[page_idx]), static_cast<int>(head_idx % layout.kv_heads)}, block,
        basis);
  });
}

BlockSummaries block_summaries(const KvLayout& layout, const std::byte* page, int kv_head,
                               int first_block, int num_blocks) {
  const auto* means = reinterpret_cast<const float*>(page + layout.means_offset(kv_head));
  const auto* sketches = reinterpret_cast<const uint8_t*>(page + layout.sketch_offset(kv_head));
  const int64_t sketch_numbers = int64_t{kPageTokens} * layout.sketch_rank;
  return {.k_means = means + int64_t{first_block} * layout.head_dim,
          .sketches = sketches + int64_t{first_block} * layout.block_tokens * layout.sketch_rank,
          .sketch_scales = reinterpret_cast<const float*>(sketches + sketch_numbers) + first_block,
          .num_blocks = num_blocks,
          .block_tokens = layout.block_tokens};
}

const float* v_mean(const KvLayout& layout, const std::byte* page, int kv_head, int block) {
  const auto* means = reinterpret_cast<const float*>(page + layout.means_offset(kv_head));
  return means + int64_t{layout.blocks() + block} * layout.head_dim;
}

}  // namespace winnow
