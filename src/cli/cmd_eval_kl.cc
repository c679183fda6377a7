// winnow eval kl: how far sparse attention moves the model's predictions from those of dense
// attention.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/eval_text.h"
#include "cli/formatted.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/progress_line.h"
#include "engine/divergence.h"

namespace winnow {
namespace {

struct KlFlags {
  ModelFlags model;
  EvalTextFlags text;
  AttentionFlags attention;
  int64_t num_positions = 1024;
  bool json = false;
};

constexpr const char* kFooter =
    "Runs the text twice as a prompt, with dense attention and as --attention says, and compares\n"
    "the next-token distributions at the last positions whose rows may be sparse. --attention\n"
    "dense compares two dense runs. Density is the share of dense attention's pairs of tokens "
    "that\n"
    "are multiplied; effective density counts the choice of blocks as well.\n";

void add_flags(FlagSet& set, KlFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_eval_text_flags(set, flags.text);
  set.integer("--last", flags.num_positions, {1, int64_t{1} << 30},
              "positions compared, up to the dense tail [1024]");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention);
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

boost::json::object to_json(const DivergenceReport& report, const AttentionStats& attention) {
  return {{"mean_kl", report.mean_kl},
          {"p99_kl", report.p99_kl},
          {"top1_agreement", report.top1_agreement},
          {"ppl_dense", report.reference_perplexity},
          {"ppl_sparse", report.other_perplexity},
          {"positions", report.num_positions},
          {"density", attention.density()},
          {"effective_density", attention.effective_density()},
          {"select_s", attention.select_s},
          {"attend_s", attention.attend_s}};
}

std::string to_text(const DivergenceReport& report, const AttentionStats& attention) {
  return formatted("mean KL            %.5f\n", report.mean_kl) +
         formatted("p99 KL             %.5f\n", report.p99_kl) +
         formatted("same first choice  %.2f %%\n", 100 * report.top1_agreement) +
         formatted("perplexity dense   %.4f\n", report.reference_perplexity) +
         formatted("perplexity sparse  %.4f\n", report.other_perplexity) +
         formatted("density            %.4f\n", attention.density()) +
         formatted("effective density  %.4f\n", attention.effective_density());
}

}  // namespace

Result<ExitCode> cmd_eval_kl(Arguments args, Console& console) {
  KlFlags flags;
  FlagSet set("eval kl", "Compares sparse attention with dense attention on a text.", kFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const SparseRule rule, sparse_rule(flags.attention));
  TRY(const std::string text, read_eval_text(flags.text, console));
  flags.model.num_contexts = 2;
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<TokenId> ids, encode_eval_text(flags.text, text, loaded, 2));

  GenerateOptions dense;
  dense.cancel = &interrupt::flag();
  GenerateOptions other = dense;
  TRY(other.sparse, chosen_attention(flags.attention));
  ProgressLine progress(console, std::ssize(ids));
  other.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  // Predictions are compared where a next token is there to be predicted.
  const int64_t sparse_end = rule.sparse_end(std::ssize(ids));
  const int64_t end = std::min<int64_t>(
      sparse_end > rule.dense_tokens ? sparse_end : std::ssize(ids), std::ssize(ids) - 1);
  const int64_t begin = std::max<int64_t>(0, end - flags.num_positions);
  Divergence divergence(ids, begin, end);
  TRY(const AttentionStats attention,
      loaded.engine->compare(ids, begin, end, dense, other,
                             [&](const LogitPair& pair) { divergence.add(pair); }));
  progress.finish();
  const DivergenceReport report = divergence.report();
  console.out.write(flags.json ? json_line(to_json(report, attention))
                               : to_text(report, attention));
  return ExitCode::kOk;
}

}  // namespace winnow
