// A model file opened for use: weights, tokenizer and engine, and the flags that say which and how.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/flags.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace winnow {

struct ModelFlags {
  std::string path;
  int64_t threads = 0;  // 0 = all that this process may use
  int64_t context_tokens = 0;
  int64_t chunk_tokens = 512;
  std::string kv_type = "bf16";
  std::optional<std::string> profile;  // file; none = the one kept for the model
  int num_contexts = 1;                // as in EngineOptions; no flag
};

void add_model_flag(FlagSet& flags, ModelFlags& target);
void add_engine_flags(FlagSet& flags, ModelFlags& target);

// The instruction-set level that WINNOW_ISA names, or the best.
Result<const KernelTable*> chosen_kernels();

// The file of a model; whatever keeps it from being read makes it a bad file.
Result<std::unique_ptr<GgufFile>> open_model_file(const std::string& path);

struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Engine> engine;
  const KernelTable* kernels = nullptr;
};
// Notes on `console` what in the file it does not use.
Result<LoadedModel> load_model(const ModelFlags& flags, Console& console);
// The same without an engine.
Result<LoadedModel> open_model(const ModelFlags& flags, Console& console);
EngineOptions engine_options(const ModelFlags& flags, const KernelTable* kernels);

// Without weights, for text that is only taken apart or put together.
struct LoadedTokenizer {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
};
Result<LoadedTokenizer> load_tokenizer(const ModelFlags& flags);

}  // namespace winnow
