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
};

// --attention, and the rule's parameters.
void add_attention_flags(FlagSet& set, AttentionFlags& flags);

// The rule itself, whatever --attention says. kInvalidArgument for a size that is no multiple of
// what the rule's tiles need.
Result<SparseRule> sparse_rule(const AttentionFlags& flags);
// None where --attention is dense.
Result<std::optional<SparseRule>> chosen_attention(const AttentionFlags& flags);

}  // namespace winnow
