// Where every number of a KV page lies. A page holds kPageTokens tokens of one layer, all KV heads,
// in the order the kernels read, followed by room for the summaries of its selection blocks.
//
// Elements are 16-bit (bf16 or f16) and interleaved in pairs, the order in which a 16-bit
// dot-product instruction or an AMX tile takes its second operand:
//   K of one head: [token group of 16][head_dim / 2][16 tokens][2 neighbouring dims]
//   V of one head: [dim group of 16][kPageTokens / 2][16 dims][2 neighbouring tokens]
// Heads follow each other: K head 0, V head 0, K head 1, ...
#pragma once

#include <cstdint>
#include <span>

#include "tensor/kv_dtype.h"

namespace winnow {

inline constexpr int kPageTokens = 128;
inline constexpr int kKvLanes = 16;  // tokens (K) or dims (V) side by side

struct KvLayout {
  int kv_heads = 0;
  int head_dim = 0;  // K and V widths are equal; a multiple of 16
  KvDType dtype = KvDType::kBf16;
  int block_tokens = 32;  // tokens per selection block; divides kPageTokens
  int sketch_rank = 0;    // bytes per key of its int8 sketch; 0 = no sketches

  // Indices in 16-bit elements from the start of the K (or V) of one head.
  int64_t k_index(int token, int dim) const {
    const int64_t group = token / kKvLanes;
    return ((group * (head_dim / 2) + dim / 2) * kKvLanes + token % kKvLanes) * 2 + dim % 2;
  }
  int64_t v_index(int token, int dim) const {
    const int64_t group = dim / kKvLanes;
    return ((group * (kPageTokens / 2) + token / 2) * kKvLanes + dim % kKvLanes) * 2 + token % 2;
  }

  // Byte offsets from the start of the page.
  int64_t k_offset(int kv_head) const { return 2 * kv_head * matrix_bytes(); }
  int64_t v_offset(int kv_head) const { return k_offset(kv_head) + matrix_bytes(); }
  // Block means of one head: K then V, each [kPageTokens / block_tokens][head_dim] f32.
  int64_t means_offset(int kv_head) const { return k_offset(kv_heads) + kv_head * means_bytes(); }
  // Key sketches of one head: [kPageTokens][sketch_rank] numbers in -127..127, each stored plus
  // 128 in a byte, then the f32 scale of each block.
  int64_t sketch_offset(int kv_head) const {
    return means_offset(kv_heads) + kv_head * sketch_bytes();
  }
  // Whole page, rounded up so that every page starts on a cache line.
  int64_t page_bytes() const { return (sketch_offset(kv_heads) + 63) / 64 * 64; }

  int64_t matrix_bytes() const { return int64_t{2} * kPageTokens * head_dim; }
  int64_t means_bytes() const { return int64_t{2} * blocks() * head_dim * 4; }
  int64_t sketch_bytes() const {
    return sketch_rank == 0 ? 0 : int64_t{kPageTokens} * sketch_rank + int64_t{blocks()} * 4;
  }
  int blocks() const { return kPageTokens / block_tokens; }  // of a page
};

// Of one page in all layers.
inline int64_t bytes_per_page(std::span<const KvLayout> layouts) {
  int64_t bytes = 0;
  for (const KvLayout& layout : layouts) bytes += layout.page_bytes();
  return bytes;
}

}  // namespace winnow
