#include "cli/profile_setup.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "cli/formatted.h"
#include "cli/interrupt.h"
#include "cli/profile_text.h"
#include "cli/progress_line.h"
#include "engine/profile_file.h"

namespace winnow {
namespace {

// A text of more tokens than this changes the moments little.
constexpr int64_t kMaxProfileTokens = 8192;

// Bases are then fitted on the prompt's keys alone.
SparseProfile no_profile(const Model& model) {
  SparseProfile profile;
  profile.layers.resize(model.config().layers.size());
  return profile;
}

}  // namespace

std::optional<std::string> profile_path(const Model& model) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return std::nullopt;
  }
  char name[40];
  std::snprintf(name, sizeof(name), "%016llx.profile",
                static_cast<unsigned long long>(model_fingerprint(model)));
  return (folder / "winnow" / "profiles" / name).string();
}

Status keep_profile(const SparseProfile& profile, const Model& model, const std::string& path) {
  std::error_code error;  // save_profile tells what is wrong
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  return save_profile(profile, model_fingerprint(model), path);
}

std::vector<TokenId> profile_ids(const Engine& engine, const Tokenizer& tokenizer,
                                 std::string_view text) {
  std::vector<TokenId> ids = tokenizer.encode_raw_prompt(std::string(text));
  const int64_t most = std::min(kMaxProfileTokens, engine.context_tokens());
  if (std::ssize(ids) > most) ids.resize(static_cast<size_t>(most));
  return ids;
}

Result<SparseProfile> make_profile(Engine& engine, std::span<const TokenId> ids, Console& console) {
  console.note("profiling this model's attention on " + std::to_string(ids.size()) +
               " tokens, once ...");
  const auto start = std::chrono::steady_clock::now();
  ProgressLine progress(console, std::ssize(ids));
  GenerateOptions options;
  options.cancel = &interrupt::flag();
  options.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  Result<SparseProfile> profile = engine.profile(ids, options);
  progress.finish();
  if (!profile.ok()) return profile;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  console.note(formatted("profiled in %.1f s", elapsed.count()));
  return profile;
}

Result<SparseProfile> find_profile(const std::optional<std::string>& given, Engine& engine,
                                   const Tokenizer& tokenizer, Console& console) {
  if (given) return load_profile(*given, engine.model());
  const std::optional<std::string> path = profile_path(engine.model());
  if (path && std::filesystem::exists(*path)) {
    Result<SparseProfile> kept = load_profile(*path, engine.model());
    if (kept.ok()) return kept;
    console.note("warning: " + kept.error().message + "; making another");
  }
  const std::vector<TokenId> ids = profile_ids(engine, tokenizer, profile_text());
  const int64_t num_tokens = std::ssize(ids);
  if (engine.free_tokens() < num_tokens) {
    console.note("warning: no room to profile this model's attention beside the conversation");
    return no_profile(engine.model());
  }
  TRY(SparseProfile profile, make_profile(engine, ids, console));
  // One cut short by a small context would not serve the next run.
  const bool whole =
      num_tokens == std::min(kMaxProfileTokens, engine.model().config().context_tokens) ||
      num_tokens < engine.context_tokens();
  if (path && whole) {
    const Status saved = keep_profile(profile, engine.model(), *path);
    // A place that cannot be written costs only the time to make it again.
    if (!saved.ok()) console.note("warning: " + saved.error().message);
  }
  return profile;
}

}  // namespace winnow
