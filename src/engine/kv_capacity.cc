#include "engine/kv_capacity.h"

#include <algorithm>

#include "base/memory_info.h"
#include "kv/kv_store.h"
#include "model/decoder.h"

namespace winnow {
namespace {

// A context that memory cuts below this is of no use; better to say what is missing.
constexpr int64_t kMinPages = 4;

// What a model needs in memory besides its KV pages: the weights it reads in every step, and a
// step's activations.
int64_t fixed_bytes(const Model& model, int64_t chunk_tokens) {
  return model.weight_bytes() + activation_bytes(model.config(), chunk_tokens);
}

}  // namespace

Result<int64_t> choose_kv_tokens(const KvNeed& need, const Model& model) {
  const int64_t fixed = fixed_bytes(model, pages_for(need.chunk_tokens) * kPageTokens);
  const int64_t available = available_memory_bytes();
  const int64_t pages_that_fit = std::max(int64_t{0}, available - fixed) / need.page_bytes;
  const int64_t wanted =
      need.tokens != 0
          ? need.tokens
          : std::min(need.most, kPageTokens * std::max<int64_t>(kMinPages, pages_that_fit));
  if (pages_for(wanted) <= pages_that_fit) return wanted;
  return fail(ErrorCode::kOutOfMemory,
              "a context of %lld tokens needs %lld MiB of KV cache beside %lld MiB of weights and "
              "activations, but "
              "only %lld MiB are free; about %lld tokens fit",
              static_cast<long long>(wanted),
              static_cast<long long>((pages_for(wanted) * need.page_bytes) >> 20),
              static_cast<long long>(fixed >> 20), static_cast<long long>(available >> 20),
              static_cast<long long>(pages_that_fit * kPageTokens));
}

}  // namespace winnow
