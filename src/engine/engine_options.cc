#include "engine/engine_options.h"

namespace winnow {
namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

Status check_options(const EngineOptions& options, const ModelConfig& config) {
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return fail(ErrorCode::kInvalidArgument, "threads: expected 1 to %d (0 = all), found %d",
                kMaxThreads, options.num_threads);
  }
  if (options.chunk_tokens < 1) {
    return fail(ErrorCode::kInvalidArgument, "chunk: expected at least 1 token, found %d",
                options.chunk_tokens);
  }
  if (options.context_tokens < 0 || options.context_tokens > config.context_tokens) {
    return fail(ErrorCode::kInvalidArgument,
                "context: expected 1 to %lld tokens, the model's own limit, found %lld",
                static_cast<long long>(config.context_tokens),
                static_cast<long long>(options.context_tokens));
  }
  return Ok{};
}

}  // namespace winnow
