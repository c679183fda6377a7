#include "cli/attention_flags.h"

#include "tensor/kv_layout.h"

namespace winnow {
namespace {

constexpr int64_t kMaxTokens = int64_t{1} << 26;

Status check_multiple(const char* flag, int64_t value, int64_t of) {
  if (value % of == 0) return Ok{};
  return fail(ErrorCode::kInvalidArgument, "%s: expected a multiple of %lld, found %lld", flag,
              static_cast<long long>(of), static_cast<long long>(value));
}

}  // namespace

void add_attention_flags(FlagSet& set, AttentionFlags& flags) {
  set.choice("--attention", flags.attention, {"dense", "sparse", "auto"},
             "how long prompts attend [auto]");
  set.choice("--sparse-rule", flags.rule, {"winnow", "v2"}, "which blocks are kept [winnow]");
  set.choice("--sparse-correction", flags.correction, {"on", "off"},
             "blocks left out enter as their means [on]");
  set.number("--sparse-tau", flags.tau, {0, 1}, "winnow: least share of a kept block [0.009]");
  set.integer("--sparse-sink", flags.sink_tokens, {0, kMaxTokens},
              "winnow: first tokens, always kept [64]");
  set.integer("--sparse-window", flags.window_tokens, {64, kMaxTokens},
              "winnow: nearest tokens, always kept [64]");
  set.integer("--sparse-dense-tokens", flags.dense_tokens, {kPageTokens, kMaxTokens},
              "first tokens of a prompt, dense [2048]");
  set.integer("--sparse-tail", flags.tail_tokens, {0, kMaxTokens},
              "last tokens of a prompt, dense [128]");
  set.number("--sparse-alpha", flags.alpha, {0, 1}, "v2: least part of the best score [0.1]");
  set.integer("--sparse-dense-layers", flags.dense_layers, {0, 1024},
              "v2: first layers, dense [4]");
}

Result<SparseRule> sparse_rule(const AttentionFlags& flags) {
  TRY_STATUS(check_multiple("--sparse-sink", flags.sink_tokens, KvLayout{}.block_tokens));
  TRY_STATUS(check_multiple("--sparse-window", flags.window_tokens, 64));
  TRY_STATUS(check_multiple("--sparse-dense-tokens", flags.dense_tokens, kPageTokens));
  return SparseRule{.kind = flags.rule == "v2" ? SparseRuleKind::kV2 : SparseRuleKind::kWinnow,
                    .correction = flags.correction == "on",
                    .dense_tokens = static_cast<int32_t>(flags.dense_tokens),
                    .tail_tokens = static_cast<int32_t>(flags.tail_tokens),
                    .tau = flags.tau,
                    .sink_tokens = static_cast<int32_t>(flags.sink_tokens),
                    .window_tokens = static_cast<int32_t>(flags.window_tokens),
                    .alpha = flags.alpha,
                    .dense_layers = static_cast<int32_t>(flags.dense_layers)};
}

Result<std::optional<SparseRule>> chosen_attention(const AttentionFlags& flags) {
  TRY(const SparseRule rule, sparse_rule(flags));
  return flags.attention == "dense" ? std::nullopt : std::optional(rule);
}

}  // namespace winnow
