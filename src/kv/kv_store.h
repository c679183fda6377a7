// KvStore: the memory of all KV pages of one model, with the pool that knows which are taken.
// A page id names the same 128 token positions in every layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "kv/page_pool.h"
#include "tensor/kv_layout.h"

namespace winnow {

// Pages that hold `num_tokens` tokens.
constexpr int64_t pages_for(int64_t num_tokens) {
  return (num_tokens + kPageTokens - 1) / kPageTokens;
}

// The pages of one layer: page id -> bytes. Not owned.
struct KvLayerView {
  KvLayout layout;
  std::byte* pages = nullptr;
  int64_t page_bytes = 0;

  std::byte* page(PageId id) const { return pages + static_cast<int64_t>(id) * page_bytes; }
};

// Memory is reserved up front but touched only when a page is first written.
class KvStore {
 public:
  // One layout per layer (layers may differ in heads and widths). kOutOfMemory if it cannot be
  // reserved.
  static Result<std::unique_ptr<KvStore>> create(std::span<const KvLayout> layers,
                                                 int64_t num_pages);
  ~KvStore();
  KvStore(const KvStore&) = delete;
  KvStore& operator=(const KvStore&) = delete;

  KvLayerView layer(int layer_idx) const;
  int num_layers() const;
  int64_t num_pages() const;
  int64_t bytes_per_page() const;  // of all layers together
  // The bytes of a page, layer after layer. Require bytes_per_page() bytes.
  void read_page(PageId id, std::span<std::byte> bytes) const;
  void write_page(PageId id, std::span<const std::byte> bytes);
  // K and V of the first tokens of a page, in all layers, without summaries. What stands behind
  // them in `to` afterwards is left open.
  void copy_tokens(PageId from, PageId to, int num_tokens);
  PagePool& pool();
  const PagePool& pool() const;

 private:
  struct Impl;
  explicit KvStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
