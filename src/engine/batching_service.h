// BatchingService: the GenerationService of a real model. One thread runs step after step: every
// request that generates gets its token, and a slice of the waiting prompts comes along.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "attention/sparse_profile.h"
#include "engine/engine_options.h"
#include "engine/generation_service.h"
#include "engine/scheduler.h"
#include "store/prefix_folder.h"

namespace winnow {

struct BatchingOptions {
  EngineOptions engine = {};  // context_tokens: of one request; num_contexts is not read
  // Tokens whose K and V there is room for, over all requests and the prefix cache; 0 =
  // kDefaultContexts times the context, as far as memory allows.
  int64_t kv_tokens = 0;
  SchedulerLimits limits = {.max_rerun_tokens = 32};
  // What a step may take while someone waits for a token; none = twice a step without prompt
  // tokens.
  std::optional<double> step_target_s = {};
  std::optional<SparseProfile> profile = {};
  PrefixFolder* folder = nullptr;  // of saved prefixes, for this model and `engine`; may be null
  // Of saved pages, read or written between two looks of the engine, and copied by it at once.
  int64_t saved_bytes_at_once = int64_t{32} << 20;
  std::function<void(const StepReport&)> on_step = {};
};

inline constexpr int kDefaultContexts = 4;

// kOutOfMemory naming what is needed and what is free; kInvalidArgument for an option out of range.
// Destroying it ends every request (kCancelled) and waits for the step at hand.
Result<std::unique_ptr<GenerationService>> create_batching_service(
    std::shared_ptr<const Model> model, BatchingOptions options);

}  // namespace winnow
