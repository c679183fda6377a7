// The flags that say how long prompts attend.
#pragma once

#include <optional>
#include <string>

#include "attention/sparse_rule.h"
#include "cli/flags.h"

namespace winnow {

struct AttentionFlags {
  std::string attention = "auto";
  std::string rule = "winnow";
  std::string correction = "on";
  float tau = SparseRule{}.tau;
  float alpha = SparseRule{}.alpha;
  int64_t dense_layers = SparseRule{}.dense_layers;
  int64_t dense_tokens = SparseRule{}.dense_tokens;
  int64_t tail_tokens = SparseRule{}.tail_tokens;
  int64_t sink_tokens = SparseRule{}.sink_tokens;
  int64_t window_tokens = SparseRule{}.window_tokens;
  std::string decode = "off";
  float decode_tau = SparseRule{}.decode_tau;
};

// Which of the flags a verb's help explains; all of them are taken.
enum class AttentionHelp { kAll, kMain };
inline constexpr const char* kMoreAttentionFlags =
    "More --sparse flags: see 'winnow eval kl --help'.\n";

// --attention, and the rule's parameters.
void add_attention_flags(FlagSet& set, AttentionFlags& flags,
                         AttentionHelp help = AttentionHelp::kAll);
// --sparse-decode, and its tau, which the help leaves out, for a verb that makes answers.
void add_decode_flags(FlagSet& set, AttentionFlags& flags);
void add_decode_tau_flag(FlagSet& set, AttentionFlags& flags);
// Those among them that say where a rule's rows and forced blocks begin and end.
void add_rule_size_flags(FlagSet& set, AttentionFlags& flags,
                         AttentionHelp help = AttentionHelp::kAll);

// The rule itself, whatever --attention says. kInvalidArgument for a size that is no multiple of
// what the rule's tiles need, and for --sparse-decode with a rule that has none.
Result<SparseRule> sparse_rule(const AttentionFlags& flags);
// Prompts so long attend sparsely under --attention auto, on this CPU.
Result<int64_t> auto_sparse_tokens();
// None where --attention is dense; only answers are sparse if --sparse-decode is on.
Result<std::optional<SparseRule>> chosen_attention(const AttentionFlags& flags);
// For a verb that shows what sparse attention does: also kInvalidArgument where --attention is
// dense.
Result<SparseRule> sparse_only(const AttentionFlags& flags);
// "winnow tau 0.004", "v2 alpha 0.1"; "winnow decode tau 0.001".
std::string prompt_attention_name(const SparseRule& rule);
std::string answer_attention_name(const SparseRule& rule);

}  // namespace winnow
