#include "engine/prompt_check.h"

namespace winnow {

Error context_exceeded(const Model& model, int64_t context_tokens, const PromptSize& prompt) {
  const bool is_cut = context_tokens < model.config().context_tokens;
  return fail(
      ErrorCode::kContextExceeded,
      "This model's maximum context length is %lld tokens%s, but the prompt has %s%lld tokens%s",
      static_cast<long long>(context_tokens),
      is_cut ? " as it was set up here (-c, or free memory)" : "", prompt.exact ? "" : "at least ",
      static_cast<long long>(prompt.tokens),
      prompt.tokens <= context_tokens ? ", which leaves no room for an answer" : "");
}

Status check_prompt(const Model& model, int64_t context_tokens, int64_t max_tokens,
                    std::span<const TokenId> prompt) {
  TRY_STATUS(model.file().check_unchanged());
  if (prompt.empty())
    return fail(ErrorCode::kInvalidArgument, "prompt: expected at least one token, found none");
  const auto num_tokens = static_cast<int64_t>(prompt.size());
  if (num_tokens > max_tokens) {
    return context_exceeded(model, context_tokens, {.tokens = num_tokens});
  }
  const int32_t vocab_size = model.config().vocab_size;
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < vocab_size) continue;
    return fail(ErrorCode::kInvalidArgument,
                "prompt token %zu: expected an id in [0, %d), found %d", i, vocab_size, prompt[i]);
  }
  return Ok{};
}

}  // namespace winnow
