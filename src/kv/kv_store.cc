#include "kv/kv_store.h"

#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/checked.h"

namespace winnow {
namespace {

constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

// Address space that the system fills with zeroed memory when it is first touched.
class Reservation {
 public:
  Reservation() = default;
  ~Reservation() {
    if (data_ != nullptr) munmap(data_, size_bytes_);
  }
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;

  bool reserve(uint64_t size_bytes) {
    void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return false;
    data_ = static_cast<std::byte*>(data);
    size_bytes_ = size_bytes;
    // Attention reads whole pages of K and V in order: fewer address translations. Only advice.
    madvise(data_, size_bytes_, MADV_HUGEPAGE);
    return true;
  }
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace

// Invariant: the layers' regions lie behind one another and do not overlap.
struct KvStore::Impl {
  Reservation memory;
  std::vector<KvLayerView> layers;
  int64_t bytes_per_page = 0;
  std::optional<PagePool> pool;  // made once the memory is there
};

Result<std::unique_ptr<KvStore>> KvStore::create(std::span<const KvLayout> layers,
                                                 int64_t num_pages) {
  if (num_pages < 1 || num_pages > std::numeric_limits<int32_t>::max()) {
    return fail(ErrorCode::kInvalidArgument, "KV cache: %lld pages; expected 1 to %d",
                static_cast<long long>(num_pages), std::numeric_limits<int32_t>::max());
  }
  Checked total(0);
  for (const KvLayout& layout : layers) {
    CHECK(layout.kv_heads > 0 && layout.head_dim > 0 && layout.head_dim % kKvLanes == 0);
    CHECK(layout.block_tokens > 0 && kPageTokens % layout.block_tokens == 0);
    const auto page_bytes = static_cast<uint64_t>(layout.page_bytes());
    total =
        (total + Checked(page_bytes) * static_cast<uint64_t>(num_pages)).round_up(kHugePageBytes);
  }
  auto impl = std::make_unique<Impl>();
  if (!total.at_most(std::numeric_limits<int64_t>::max()) || !impl->memory.reserve(*total.get())) {
    return fail(ErrorCode::kOutOfMemory,
                "KV cache: cannot reserve %lld pages of %zu layers (%.1f GiB of address space)",
                static_cast<long long>(num_pages), layers.size(),
                total.valid() ? static_cast<double>(*total.get()) / 0x1p30 : INFINITY);
  }
  uint64_t offset = 0;
  for (const KvLayout& layout : layers) {
    const int64_t page_bytes = layout.page_bytes();
    impl->layers.push_back({layout, impl->memory.data() + offset, page_bytes});
    impl->bytes_per_page += page_bytes;
    offset = *(Checked(offset) + static_cast<uint64_t>(page_bytes * num_pages))
                  .round_up(kHugePageBytes)
                  .get();
  }
  impl->pool.emplace(num_pages);
  return std::unique_ptr<KvStore>(new KvStore(std::move(impl)));
}

KvStore::KvStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
KvStore::~KvStore() = default;

KvLayerView KvStore::layer(int layer_idx) const {
  CHECK(layer_idx >= 0 && layer_idx < num_layers());
  return impl_->layers[static_cast<size_t>(layer_idx)];
}

int KvStore::num_layers() const { return static_cast<int>(impl_->layers.size()); }
int64_t KvStore::num_pages() const { return impl_->pool->num_pages(); }
int64_t KvStore::bytes_per_page() const { return impl_->bytes_per_page; }

void KvStore::read_page(PageId id, std::span<std::byte> bytes) const {
  CHECK(std::ssize(bytes) == impl_->bytes_per_page);
  for (const KvLayerView& layer : impl_->layers) {
    std::memcpy(bytes.data(), layer.page(id), static_cast<size_t>(layer.page_bytes));
    bytes = bytes.subspan(static_cast<size_t>(layer.page_bytes));
  }
}

void KvStore::write_page(PageId id, std::span<const std::byte> bytes) {
  CHECK(std::ssize(bytes) == impl_->bytes_per_page);
  for (const KvLayerView& layer : impl_->layers) {
    std::memcpy(layer.page(id), bytes.data(), static_cast<size_t>(layer.page_bytes));
    bytes = bytes.subspan(static_cast<size_t>(layer.page_bytes));
  }
}

void KvStore::copy_tokens(PageId from, PageId to, int num_tokens) {
  CHECK(from != to && num_tokens > 0 && num_tokens <= kPageTokens);
  for (const KvLayerView& layer : impl_->layers) {
    const KvLayout& layout = layer.layout;
    const auto copy = [&](int64_t offset, int64_t num_bytes) {
      std::memcpy(layer.page(to) + offset, layer.page(from) + offset,
                  static_cast<size_t>(num_bytes));
    };
    // Whole groups of K, whole pairs of V.
    const int64_t k_bytes =
        2 * layout.k_index((num_tokens + kKvLanes - 1) / kKvLanes * kKvLanes, 0);
    const int64_t v_bytes = 2 * layout.v_index((num_tokens + 1) / 2 * 2, 0);
    for (int head = 0; head < layout.kv_heads; ++head) {
      copy(layout.k_offset(head), k_bytes);
      for (int dim = 0; dim < layout.head_dim; dim += kKvLanes) {
        copy(layout.v_offset(head) + 2 * layout.v_index(0, dim), v_bytes);
      }
    }
  }
}

PagePool& KvStore::pool() { return *impl_->pool; }
const PagePool& KvStore::pool() const { return *impl_->pool; }

}  // namespace winnow
