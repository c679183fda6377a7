#include "engine/kv_capacity.h"

#include <algorithm>

#include "base/memory_info.h"
#include "kv/kv_store.h"

namespace winnow {
namespace {

// A context that memory cuts below this is of no use; better to say what is missing.
constexpr int64_t kMinPages = 4;

// Beyond a few hundred rows a larger step is hardly faster (weights are unpacked once for all of
// them), so memory is better left to the KV cache.
constexpr int64_t kMostStepBytes = int64_t{128} << 20;
constexpr int64_t kUsualChunkTokens = 512;

}  // namespace

int64_t spare_memory_bytes(int64_t total_bytes) {
  constexpr int64_t kUsualBytes = int64_t{512} << 20;
  return std::max(total_bytes / 10, std::min(kUsualBytes, total_bytes / 4));
}

int64_t choose_chunk_tokens(int64_t asked, const ModelConfig& config, const KernelTable& kernels,
                            const StepSize& size_of_others) {
  const auto fits = [&](int64_t pages) {
    StepSize size = size_of_others;
    size.num_rows = pages * kPageTokens;
    return size.num_rows <= kUsualChunkTokens ||
           step_bytes(config, kernels, size) <= kMostStepBytes;
  };
  int64_t least = 1, most = pages_for(asked);
  while (least < most) {
    const int64_t middle = (least + most + 1) / 2;
    if (fits(middle)) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  return least * kPageTokens;
}

Result<int64_t> choose_kv_tokens(const KvNeed& need, const Model& model) {
  return choose_kv_tokens(need, model.weight_bytes() + need.step_bytes,
                          {available_memory_bytes(), total_memory_bytes()});
}

Result<int64_t> choose_kv_tokens(const KvNeed& need, int64_t fixed, const MachineMemory& memory) {
  const int64_t available = memory.available_bytes;
  const auto pages_in = [&](int64_t num_bytes) {
    return std::max(int64_t{0}, num_bytes - fixed) / need.page_bytes;
  };
  const int64_t pages_that_fit = pages_in(available);
  int64_t wanted = need.tokens;
  if (wanted == 0) {
    const int64_t pages = pages_in(available - spare_memory_bytes(memory.total_bytes));
    wanted = std::min(need.most, kPageTokens * std::max(kMinPages, pages));
  }
  if (pages_for(wanted) <= pages_that_fit) return wanted;
  return fail(ErrorCode::kOutOfMemory,
              "a context of %lld tokens needs %lld MiB of KV cache beside %lld MiB of weights and "
              "activations, but only %lld MiB are free; about %lld tokens fit",
              static_cast<long long>(wanted),
              static_cast<long long>((pages_for(wanted) * need.page_bytes) >> 20),
              static_cast<long long>(fixed >> 20), static_cast<long long>(available >> 20),
              static_cast<long long>(pages_that_fit * kPageTokens));
}

}  // namespace winnow
