#include "engine/cache_scope.h"

namespace winnow {

std::string mode_scope(const PromptMode& mode) {
  std::string scope;
  if (!mode.uses_summaries()) return scope;
  const SparseRule& rule = *mode.rule;
  const auto add = [&](const auto& value) {
    scope.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  add(rule.kind), add(rule.correction), add(rule.dense_tokens), add(rule.tau), add(rule.alpha);
  add(rule.sink_tokens), add(rule.window_tokens), add(rule.sink_blocks), add(rule.window_blocks);
  add(rule.dense_layers), add(rule.prompt), add(rule.decode);
  if (rule.decode) add(rule.decode_tau);
  return scope;
}

std::string cache_scope(std::string_view tenant, const PromptMode& mode,
                        std::span<const TokenId> prompt) {
  std::string scope(tenant);
  scope.push_back('\0');
  if (!mode.uses_summaries()) return scope;
  scope += mode_scope(mode);
  const auto first = prompt.first(static_cast<size_t>(mode.rule->dense_tokens));
  scope.append(reinterpret_cast<const char*>(first.data()), first.size_bytes());
  return scope;
}

}  // namespace winnow
