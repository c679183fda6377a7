// The engine behind `winnow serve`.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "cli/attention_flags.h"
#include "cli/console.h"
#include "cli/loaded_model.h"
#include "engine/batching_service.h"

namespace winnow {

struct ServeEngineFlags {
  int64_t kv_tokens = 0;  // 0 = as BatchingOptions
  int64_t max_running = 64;
  int64_t max_waiting = 512;
  float step_target_ms = 0;  // 0 = twice a step without prompt tokens
  std::optional<std::string> prefix_folder;
  float prefix_folder_gib = 32;
};

void add_serve_engine_flags(FlagSet& set, ServeEngineFlags& flags);

// The folder of saved prefixes; null without one. Reads the whole model file. `on_useless_file` is
// told of files that are of no use to this model.
Result<std::unique_ptr<PrefixFolder>> open_prefixes(
    const ModelFlags& model, const ServeEngineFlags& flags, const LoadedModel& loaded,
    std::function<void(const Error&)> on_useless_file);

// The profile of the model's attention is read, or made and kept, before the first request, unless
// prompts are dense.
Result<std::unique_ptr<GenerationService>> create_generation_service(
    const ModelFlags& model, const ServeEngineFlags& flags, const AttentionFlags& attention,
    const LoadedModel& loaded, PrefixFolder* folder, std::function<void(const StepReport&)> on_step,
    Console& console);

}  // namespace winnow
