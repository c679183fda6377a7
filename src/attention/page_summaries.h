// What a page keeps about its selection blocks beside K and V: the mean key and value of each
// block, and a sketch of every key.
#pragma once

#include <cstdint>
#include <span>

#include "attention/sketch_basis.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "kernels/block_kernels.h"
#include "kv/kv_store.h"

namespace winnow {

// Writes the summaries of pages [first_page, end_page) of a sequence, all of them full, from K and
// V as stored. Without a basis only means.
void summarize_pages(const KvLayerView& kv, std::span<const PageId> pages, int32_t first_page,
                     int32_t end_page, const SketchBasis* basis, ThreadPool& pool);

// The summaries of blocks [first_block, first_block + num_blocks) of one page and head.
BlockSummaries block_summaries(const KvLayout& layout, const std::byte* page, int kv_head,
                               int first_block, int num_blocks);
// The mean value of a block.
const float* v_mean(const KvLayout& layout, const std::byte* page, int kv_head, int block);

}  // namespace winnow
