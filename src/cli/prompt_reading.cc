#include "cli/prompt_reading.h"

#include "cli/interrupt.h"
#include "cli/progress_line.h"
#include "engine/sequence.h"

namespace winnow {

Result<AttentionStats> read_sparsely(const LoadedModel& loaded, std::span<const TokenId> ids,
                                     const SparseRule& rule, SelectionObserver& observer,
                                     Console& console) {
  ProgressLine progress(console, std::ssize(ids));
  GenerateOptions options;
  options.max_new_tokens = 0;
  options.sparse = rule;
  options.observer = &observer;
  options.cancel = &interrupt::flag();
  options.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  const std::unique_ptr<Sequence> sequence = loaded.engine->new_sequence();
  TRY(const Generation generation, loaded.engine->generate(*sequence, ids, options));
  if (generation.finish == FinishReason::kCancelled) {
    return fail(ErrorCode::kInterrupted, "interrupted");
  }
  if (generation.attention.has_selection()) return generation.attention;
  return fail(ErrorCode::kInvalidArgument,
              "text: expected sparse rows, which prompts of at least %d tokens have in layers of "
              "full attention, found none in %zu tokens",
              rule.dense_tokens + rule.tail_tokens + kPageTokens, ids.size());
}

}  // namespace winnow
