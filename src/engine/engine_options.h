// EngineOptions: what an engine runs a model with.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/table.h"
#include "model/config.h"
#include "tensor/kv_layout.h"

namespace winnow {

struct EngineOptions {
  int num_threads = 0;  // 0 = usable_threads()
  // Prompt tokens per step; rounded up to a multiple of kPageTokens, and cut where they take too
  // much memory: see choose_chunk_tokens().
  int chunk_tokens = 512;
  int64_t context_tokens =
      0;  // room for this many tokens; 0 = the model's context, as far as memory allows
  int num_contexts = 1;  // sequences of that many tokens that fit side by side
  KvDType kv_dtype = KvDType::kBf16;
  const KernelTable* kernels = nullptr;  // null = select_kernels("")
};

// kInvalidArgument naming the option, its range and the value found.
Status check_options(const EngineOptions& options, const ModelConfig& config);

}  // namespace winnow
