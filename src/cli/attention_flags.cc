#include "cli/attention_flags.h"

#include "cli/formatted.h"
#include "cli/loaded_model.h"
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

// At 3,072 tokens attention takes 0.65 to 0.68 of dense attention's time, at 2,048 up to 0.96 (Zen
// 4, heads of 64 dims); a model's first sparse prompt also waits for its profile. On AMX tiles
// dense attention is several times as fast and the choice of blocks is not: prompts of 4,096 tokens
// lose a seventh of their speed, those of 16,384 none (Qwen2.5-Coder-0.5B).
Result<int64_t> auto_sparse_tokens() {
  TRY(const KernelTable* kernels, chosen_kernels());
  return kernels->isa == Isa::kAmx ? 16384 : 4096;
}

void add_attention_flags(FlagSet& set, AttentionFlags& flags, AttentionHelp help) {
  const auto detail = [&] {
    if (help == AttentionHelp::kMain) set.hide_last();
  };
  set.choice(
      "--attention", flags.attention, {"dense", "sparse", "auto"},
      "auto: sparse for prompts from 4,096 tokens on (AMX: 16,384) [" + flags.attention + "]");
  set.choice("--sparse-rule", flags.rule, {"winnow", "v2"}, "which blocks are kept [winnow]");
  detail();
  set.number("--sparse-tau", flags.tau, {0, 1}, "winnow: least share of a kept block [0.004]");
  set.number("--sparse-alpha", flags.alpha, {0, 1}, "v2: least part of the best score [0.1]");
  detail();
  add_rule_size_flags(set, flags, help);
}

void add_rule_size_flags(FlagSet& set, AttentionFlags& flags, AttentionHelp help) {
  const auto detail = [&] {
    if (help == AttentionHelp::kMain) set.hide_last();
  };
  set.choice("--sparse-correction", flags.correction, {"on", "off"},
             "blocks left out enter as their means [on]");
  detail();
  set.integer("--sparse-sink", flags.sink_tokens, {0, kMaxTokens},
              "winnow: first tokens, always kept [64]");
  detail();
  set.integer("--sparse-window", flags.window_tokens, {64, kMaxTokens},
              "winnow: nearest tokens, always kept [64]");
  detail();
  set.integer("--sparse-dense-tokens", flags.dense_tokens, {kPageTokens, kMaxTokens},
              "first tokens of a prompt, dense [1024]");
  detail();
  set.integer("--sparse-tail", flags.tail_tokens, {0, kMaxTokens},
              "last tokens of a prompt, dense [128]");
  detail();
  set.integer("--sparse-dense-layers", flags.dense_layers, {0, 1024},
              "v2: first layers, dense [4]");
  detail();
}

void add_decode_flags(FlagSet& set, AttentionFlags& flags) {
  set.choice("--sparse-decode", flags.decode, {"on", "off"},
             "answers to long prompts attend sparsely too [off]");
  add_decode_tau_flag(set, flags);
  set.hide_last();
}

void add_decode_tau_flag(FlagSet& set, AttentionFlags& flags) {
  set.number("--sparse-decode-tau", flags.decode_tau, {0, 1},
             formatted("least share of a block kept for a generated token [%g]",
                       static_cast<double>(SparseRule{}.decode_tau)));
}

Result<SparseRule> sparse_rule(const AttentionFlags& flags) {
  TRY_STATUS(check_multiple("--sparse-sink", flags.sink_tokens, KvLayout{}.block_tokens));
  TRY_STATUS(check_multiple("--sparse-window", flags.window_tokens, 64));
  TRY_STATUS(check_multiple("--sparse-dense-tokens", flags.dense_tokens, kPageTokens));
  if (flags.decode == "on" && flags.rule != "winnow") {
    return fail(ErrorCode::kInvalidArgument,
                "--sparse-decode: expected --sparse-rule winnow, found %s", flags.rule.c_str());
  }
  return SparseRule{.kind = flags.rule == "v2" ? SparseRuleKind::kV2 : SparseRuleKind::kWinnow,
                    .decode = flags.decode == "on",
                    .correction = flags.correction == "on",
                    .dense_tokens = static_cast<int32_t>(flags.dense_tokens),
                    .tail_tokens = static_cast<int32_t>(flags.tail_tokens),
                    .tau = flags.tau,
                    .decode_tau = flags.decode_tau,
                    .sink_tokens = static_cast<int32_t>(flags.sink_tokens),
                    .window_tokens = static_cast<int32_t>(flags.window_tokens),
                    .alpha = flags.alpha,
                    .dense_layers = static_cast<int32_t>(flags.dense_layers)};
}

Result<std::optional<SparseRule>> chosen_attention(const AttentionFlags& flags) {
  TRY(SparseRule rule, sparse_rule(flags));
  if (flags.attention == "auto") {
    TRY(rule.min_tokens, auto_sparse_tokens());
  }
  rule.prompt = flags.attention != "dense";
  return rule.prompt || rule.decode ? std::optional(rule) : std::nullopt;
}

Result<SparseRule> sparse_only(const AttentionFlags& flags) {
  if (flags.attention != "dense") return sparse_rule(flags);
  return fail(ErrorCode::kInvalidArgument, "--attention: expected sparse or auto, found dense");
}

std::string prompt_attention_name(const SparseRule& rule) {
  return rule.kind == SparseRuleKind::kV2
             ? formatted("v2 alpha %g", static_cast<double>(rule.alpha))
             : formatted("winnow tau %g", static_cast<double>(rule.tau));
}

std::string answer_attention_name(const SparseRule& rule) {
  return formatted("winnow decode tau %g", static_cast<double>(rule.decode_tau));
}

}  // namespace winnow
