#include "cli/serve_engine.h"

#include <algorithm>

#include "cli/profile_setup.h"
#include "engine/kv_identity.h"

namespace winnow {
namespace {

// None where nothing will ask for it.
Result<std::optional<SparseProfile>> chosen_profile(const ModelFlags& model,
                                                    const AttentionFlags& attention,
                                                    const LoadedModel& loaded, Console& console) {
  const bool dense = attention.attention == "dense" && attention.decode == "off";
  if (dense || model.profile == "none") {
    return std::optional<SparseProfile>();
  }
  // The text that a profile is made on has fewer tokens than this.
  constexpr int64_t kProfileContext = 16384;
  EngineOptions options = engine_options(model, loaded.kernels);
  options.num_contexts = 1;
  options.context_tokens = std::min(kProfileContext, loaded.model->config().context_tokens);
  TRY(const std::unique_ptr<Engine> engine, Engine::create(loaded.model, options));
  TRY(SparseProfile profile, find_profile(model.profile, *engine, *loaded.tokenizer, console));
  return std::optional(std::move(profile));
}

}  // namespace

void add_serve_engine_flags(FlagSet& set, ServeEngineFlags& flags) {
  set.integer("--kv-tokens", flags.kv_tokens, {0, int64_t{1} << 40},
              "tokens that all requests and the prefix cache hold [4 contexts]");
  set.integer("--max-running", flags.max_running, {1, 4096}, "requests computed at once [64]");
  set.integer("--max-waiting", flags.max_waiting, {0, 1 << 20},
              "requests that may wait; more get 429 [512]");
  set.number("--itl-target", flags.step_target_ms, {0, 1e6},
             "ms between two tokens while prompts are read [twice a step\n"
             "without prompts; at least one with 256 tokens of them]");
  set.text("--kv-store", flags.prefix_folder, "folder of prefixes that outlive the server");
  set.number("--kv-store-limit", flags.prefix_folder_gib, {0, 1e6F},
             "GiB that they may take there [32]");
}

Result<std::unique_ptr<PrefixFolder>> open_prefixes(
    const ModelFlags& model, const ServeEngineFlags& flags, const LoadedModel& loaded,
    std::function<void(const Error&)> on_useless_file) {
  if (!flags.prefix_folder) return std::unique_ptr<PrefixFolder>();
  return open_prefix_folder(
      {.path = *flags.prefix_folder,
       .limit_bytes = static_cast<int64_t>(static_cast<double>(flags.prefix_folder_gib) * 0x1p30),
       .on_useless_file = std::move(on_useless_file)},
      *loaded.model, engine_options(model, loaded.kernels));
}

Result<std::unique_ptr<GenerationService>> create_generation_service(
    const ModelFlags& model, const ServeEngineFlags& flags, const AttentionFlags& attention,
    const LoadedModel& loaded, PrefixFolder* folder, std::function<void(const StepReport&)> on_step,
    Console& console) {
  BatchingOptions options;
  TRY(options.profile, chosen_profile(model, attention, loaded, console));
  options.engine = engine_options(model, loaded.kernels);
  options.kv_tokens = flags.kv_tokens;
  options.limits.max_running = static_cast<int32_t>(flags.max_running);
  options.limits.max_waiting = static_cast<int32_t>(flags.max_waiting);
  if (flags.step_target_ms > 0) {
    options.step_target_s = static_cast<double>(flags.step_target_ms) / 1e3;
  }
  options.on_step = std::move(on_step);
  options.folder = folder;
  return create_batching_service(loaded.model, std::move(options));
}

}  // namespace winnow
