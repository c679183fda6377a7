#include "cli/loaded_model.h"

#include <cstdlib>

#include "base/escape.h"
#include "base/thread_pool.h"
#include "cli/interrupt.h"
#include "cli/profile_setup.h"

namespace winnow {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxChunkTokens = int64_t{1} << 20;
constexpr int64_t kMaxContextTokens = int64_t{1} << 40;

// A model file that the system refuses to read counts as a bad file, as one that is missing does.
Error as_bad_file(Error error) {
  if (error.code == ErrorCode::kIo || error.code == ErrorCode::kInvalidArgument) {
    error.code = ErrorCode::kNotFound;
  }
  return error;
}

// The same for what is wrong with the contents, which does not name the file itself.
Error as_bad_contents(const std::string& path, Error error) {
  error.message = escaped(path) + ": " + error.message;
  return as_bad_file(std::move(error));
}

}  // namespace

void add_model_flag(FlagSet& flags, ModelFlags& target) {
  flags.text("-m,--model", target.path, "GGUF file, or the first part of one", "WINNOW_MODEL");
  flags.require_last();
}

void add_engine_flags(FlagSet& flags, ModelFlags& target) {
  flags.integer("-t,--threads", target.threads, {1, kMaxThreads},
                "threads [all this process may use]", "WINNOW_THREADS");
  flags.integer("-c,--context", target.context_tokens, {1, kMaxContextTokens},
                "room for this many tokens [the model's own]");
  flags.integer("--chunk", target.chunk_tokens, {1, kMaxChunkTokens},
                "prompt tokens per step, in 128s, at most 128 MiB of them [512]");
  flags.choice("--kv-type", target.kv_type, {"bf16", "f16"}, "numbers in the KV cache [bf16]");
  flags.text("--sparse-profile", target.profile,
             "attention profile of the model, or 'none' [one made and kept]");
}

Result<const KernelTable*> chosen_kernels() {
  const char* forced = std::getenv("WINNOW_ISA");
  Result<const KernelTable*> kernels = select_kernels(forced == nullptr ? "" : forced);
  if (kernels.ok()) return kernels;
  return Error{ErrorCode::kInvalidArgument, kernels.error().message};
}

Result<std::unique_ptr<GgufFile>> open_model_file(const std::string& path) {
  Result<std::unique_ptr<GgufFile>> file = GgufFile::open(path);
  if (!file.ok()) return as_bad_file(file.error());
  return file;
}

EngineOptions engine_options(const ModelFlags& flags, const KernelTable* kernels) {
  return {.num_threads = static_cast<int>(flags.threads),
          .chunk_tokens = static_cast<int>(flags.chunk_tokens),
          .context_tokens = flags.context_tokens,
          .num_contexts = flags.num_contexts,
          .kv_dtype = flags.kv_type == "f16" ? KvDType::kF16 : KvDType::kBf16,
          .kernels = kernels};
}

Result<LoadedModel> open_model(const ModelFlags& flags, Console& console) {
  if (const int usable = usable_threads(); flags.threads > usable) {
    console.note("warning: --threads is " + std::to_string(flags.threads) +
                 ", but this process may use " + std::to_string(usable));
  }
  LoadedModel loaded;
  TRY(loaded.kernels, chosen_kernels());
  TRY(std::unique_ptr<GgufFile> file, open_model_file(flags.path));
  Result<std::shared_ptr<const Model>> model = Model::from_file(std::move(file));
  if (!model.ok()) return as_bad_contents(flags.path, model.error());
  loaded.model = std::move(model).value();
  for (const std::string& name : loaded.model->unused_tensors()) {
    console.note("warning: tensor '" + escaped(name) + "' is not used by this architecture");
  }
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(loaded.model->file().metadata());
  if (!tokenizer.ok()) return as_bad_contents(flags.path, tokenizer.error());
  loaded.tokenizer = std::move(tokenizer).value();
  return loaded;
}

Result<LoadedModel> load_model(const ModelFlags& flags, Console& console) {
  TRY(LoadedModel loaded, open_model(flags, console));
  TRY(loaded.engine, Engine::create(loaded.model, engine_options(flags, loaded.kernels)));
  if (flags.profile != "none") {
    loaded.engine->set_profile_source(
        [tokenizer = loaded.tokenizer.get(), path = flags.profile, &console](Engine& engine) {
          return find_profile(path, engine, *tokenizer, console);
        });
  }
  if (interrupt::requested()) return fail(ErrorCode::kInterrupted, "interrupted");
  return loaded;
}

Result<LoadedTokenizer> load_tokenizer(const ModelFlags& flags) {
  LoadedTokenizer loaded;
  TRY(loaded.file, open_model_file(flags.path));
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::create(loaded.file->metadata());
  if (!tokenizer.ok()) return as_bad_contents(flags.path, tokenizer.error());
  loaded.tokenizer = std::move(tokenizer).value();
  return loaded;
}

}  // namespace winnow
