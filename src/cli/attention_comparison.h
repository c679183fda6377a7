// One text read with dense attention and with another: how far the predictions differ, and what the
// attention cost.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "attention/sparse_rule.h"
#include "cli/console.h"
#include "cli/loaded_model.h"
#include "engine/divergence.h"
#include "engine/engine.h"

namespace winnow {

// Positions [begin, end) whose predictions are compared.
struct ComparedPositions {
  int64_t begin = 0;
  int64_t end = 0;
};
// The last `most` of a text of num_tokens >= 2 whose rows are sparse; the last with a next token if
// none are.
ComparedPositions compared_positions(const SparseRule& rule, int64_t num_tokens, int64_t most);

struct AttentionComparison {
  DivergenceReport report;
  ComparedAttention stats;  // the reference is dense

  // Time of all attention, the choice of blocks included, as a share of dense attention's.
  double time_share() const;
};

struct AnswerComparison {
  DivergenceReport report;
  ComparedAnswers stats;  // the reference is dense

  // Time of the steps as a share of those with dense attention.
  double time_share() const;
};

// The text from `begin` on as the answer to what comes before it, a dense prompt: dense against
// `rule`. Otherwise as compare_attention().
Result<AnswerComparison> compare_decode(const LoadedModel& loaded, std::span<const TokenId> ids,
                                        int64_t begin, const SparseRule& rule, Console& console);

// Needs an engine with room for two contexts. Shows progress. kInterrupted after Ctrl+C.
Result<AttentionComparison> compare_attention(const LoadedModel& loaded,
                                              std::span<const TokenId> ids,
                                              const ComparedPositions& positions,
                                              const std::optional<SparseRule>& attention,
                                              Console& console);

}  // namespace winnow
