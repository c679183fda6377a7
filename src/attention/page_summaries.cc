#include "attention/page_summaries.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.h"
#include "tensor/half.h"

namespace winnow {
namespace {

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

void write_means(const PageHead& head, int block) {
  const KvLayout& layout = head.layout;
  const int first = block * layout.block_tokens;
  const float share = 1.0F / static_cast<float>(layout.block_tokens);
  for (int dim = 0; dim < layout.head_dim; ++dim) {
    float k_sum = 0;
    float v_sum = 0;
    for (int token = first; token < first + layout.block_tokens; ++token) {
      k_sum += half_to_float(layout.dtype, head.k()[layout.k_index(token, dim)]);
      v_sum += half_to_float(layout.dtype, head.v()[layout.v_index(token, dim)]);
    }
    head.k_mean(block)[dim] = k_sum * share;
    head.v_mean(block)[dim] = v_sum * share;
  }
}

// coordinates = (k - mean) . projection: [rank]
void project_key(const PageHead& head, int block, int token, const float* projection,
                 float* coordinates) {
  const KvLayout& layout = head.layout;
  const float* mean = head.k_mean(block);
  std::fill_n(coordinates, layout.sketch_rank, 0.0F);
  for (int dim = 0; dim < layout.head_dim; ++dim) {
    const float centred =
        half_to_float(layout.dtype, head.k()[layout.k_index(token, dim)]) - mean[dim];
    const float* row = projection + int64_t{dim} * layout.sketch_rank;
    for (int i = 0; i < layout.sketch_rank; ++i) coordinates[i] += centred * row[i];
  }
}

// A block whose keys are not finite gets a NaN scale: its scores then keep every block.
void write_sketches(const PageHead& head, int block, const float* projection) {
  const KvLayout& layout = head.layout;
  const int first = block * layout.block_tokens;
  const int count = layout.block_tokens * layout.sketch_rank;
  std::vector<float> coordinates(static_cast<size_t>(count));
  for (int token = 0; token < layout.block_tokens; ++token) {
    project_key(head, block, first + token, projection,
                coordinates.data() + int64_t{token} * layout.sketch_rank);
  }
  float largest = 0;
  for (const float value : coordinates) {
    largest = std::abs(value) <= largest ? largest : std::abs(value);
  }
  const bool finite = largest <= std::numeric_limits<float>::max();
  const float step = std::max(largest, 1e-30F) / 127;
  uint8_t* sketches = head.sketch(first);
  for (int i = 0; i < count; ++i) {
    const float number = finite ? std::nearbyint(coordinates[static_cast<size_t>(i)] / step) : 0;
    sketches[i] = static_cast<uint8_t>(static_cast<int>(number) + 128);
  }
  head.sketch_scales()[block] = finite ? step : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

void summarize_pages(const KvLayerView& kv, std::span<const PageId> pages, int32_t first_page,
                     int32_t end_page, const SketchBasis* basis, ThreadPool& pool) {
  const KvLayout& layout = kv.layout;
  CHECK(first_page >= 0 && std::ssize(pages) >= end_page);
  const int64_t num_heads = int64_t{std::max(0, end_page - first_page)} * layout.kv_heads;
  pool.run(num_heads * layout.blocks(), [&](int64_t task_idx, int) {
    const auto block = static_cast<int>(task_idx % layout.blocks());
    const int64_t head_idx = task_idx / layout.blocks();
    const auto page_idx = static_cast<size_t>(first_page + head_idx / layout.kv_heads);
    const PageHead head{layout, kv.page(pages[page_idx]),
                        static_cast<int>(head_idx % layout.kv_heads)};
    write_means(head, block);
    if (basis != nullptr) write_sketches(head, block, basis->keys_of(head.kv_head));
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
