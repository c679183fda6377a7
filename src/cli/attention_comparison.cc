#include "cli/attention_comparison.h"

#include <algorithm>
#include <cmath>

#include "cli/interrupt.h"
#include "cli/progress_line.h"

namespace winnow {

ComparedPositions compared_positions(const SparseRule& rule, int64_t num_tokens, int64_t most) {
  const int64_t sparse_end = rule.sparse_end(num_tokens);
  const int64_t end =
      std::min(sparse_end > rule.dense_tokens ? sparse_end : num_tokens, num_tokens - 1);
  return {std::max<int64_t>(0, end - most), end};
}

double AttentionComparison::time_share() const {
  const double dense_s = stats.reference.select_s + stats.reference.attend_s;
  return dense_s > 0 ? (stats.other.select_s + stats.other.attend_s) / dense_s : 1;
}

Result<AttentionComparison> compare_attention(const LoadedModel& loaded,
                                              std::span<const TokenId> ids,
                                              const ComparedPositions& positions,
                                              const std::optional<SparseRule>& attention,
                                              Console& console) {
  GenerateOptions dense;
  dense.cancel = &interrupt::flag();
  GenerateOptions other = dense;
  other.sparse = attention;
  ProgressLine progress(console, std::ssize(ids));
  other.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  Divergence divergence(ids, positions.begin, positions.end);
  TRY(const ComparedAttention stats,
      loaded.engine->compare(ids, positions.begin, positions.end, dense, other,
                             [&](const LogitPair& pair) { divergence.add(pair); }));
  progress.finish();
  const DivergenceReport report = divergence.report();
  if (!std::isfinite(report.mean_kl)) {
    return fail(ErrorCode::kNumerical,
                "logits of the text: expected finite numbers, found NaN or infinity");
  }
  return AttentionComparison{report, stats};
}

}  // namespace winnow
