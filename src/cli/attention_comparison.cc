#include "cli/attention_comparison.h"

#include <algorithm>
#include <cmath>

#include "cli/interrupt.h"
#include "cli/progress_line.h"

namespace winnow {
namespace {

Result<DivergenceReport> finite_report(const Divergence& divergence) {
  const DivergenceReport report = divergence.report();
  if (std::isfinite(report.mean_kl)) return report;
  return fail(ErrorCode::kNumerical,
              "logits of the text: expected finite numbers, found NaN or infinity");
}

}  // namespace

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

double AnswerComparison::time_share() const {
  return stats.reference.ms > 0 ? stats.other.ms / stats.reference.ms : 1;
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
  TRY(const DivergenceReport report, finite_report(divergence));
  return AttentionComparison{report, stats};
}

Result<AnswerComparison> compare_decode(const LoadedModel& loaded, std::span<const TokenId> ids,
                                        int64_t begin, const SparseRule& rule, Console& console) {
  GenerateOptions dense;
  dense.cancel = &interrupt::flag();
  GenerateOptions sparse = dense;
  sparse.sparse = rule;
  sparse.sparse->prompt = false;
  sparse.sparse->decode = true;
  sparse.sparse->min_tokens = 0;
  ProgressLine progress(console, begin);
  dense.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  // The last token predicts none of the text's.
  Divergence divergence(ids, begin, std::ssize(ids) - 1);
  TRY(const ComparedAnswers stats,
      loaded.engine->compare_answers(ids.first(ids.size() - 1), begin, dense, sparse,
                                     [&](const LogitPair& pair) { divergence.add(pair); }));
  progress.finish();
  TRY(const DivergenceReport report, finite_report(divergence));
  return AnswerComparison{report, stats};
}

}  // namespace winnow
