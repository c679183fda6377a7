// winnow eval curve: what sparse attention loses and saves, rule by rule and setting by setting.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <vector>

#include "cli/attention_comparison.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/curve_plot.h"
#include "cli/eval_text.h"
#include "cli/formatted.h"
#include "cli/json_output.h"
#include "cli/output_file.h"

namespace winnow {
namespace {

struct CurveFlags {
  ModelFlags model;
  EvalTextFlags text;
  AttentionFlags attention{.attention = "sparse"};
  std::vector<float> taus = {0.004F, 0.006F, 0.009F, 0.014F, 0.02F};
  std::vector<float> alphas = {0.02F, 0.05F, 0.1F, 0.2F};
  int64_t num_positions = 1024;
  std::optional<std::string> svg_file;
  bool json = false;
};

constexpr const char* kEvalCurveFooter =
    "Runs 'winnow eval kl' once for every setting. Time is that of all attention, the choice of\n"
    "blocks included, as a share of dense attention's in the same run; other load disturbs it.\n\n"
    "Example:\n"
    "  winnow eval curve -m model.gguf -f book.txt --tokens 8192 --svg curve.svg\n";

void add_flags(FlagSet& set, CurveFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_eval_text_flags(set, flags.text);
  set.numbers("--taus", flags.taus, {0, 1}, "of the rule winnow [.004,.006,.009,.014,.02]");
  set.numbers("--alphas", flags.alphas, {0, 1}, "of the rule v2 [.02,.05,.1,.2]");
  set.integer("--last", flags.num_positions, {1, int64_t{1} << 30},
              "positions compared, up to the dense tail [1024]");
  set.text("--svg", flags.svg_file, "file for a picture of the curves");
  add_rule_size_flags(set, flags.attention);
  add_engine_flags(set, flags.model);
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

// One rule at one setting, and what came of it.
struct CurveRow {
  SparseRule rule;
  AttentionComparison found = {};

  bool is_v2() const { return rule.kind == SparseRuleKind::kV2; }
  const char* rule_name() const { return is_v2() ? "v2" : "winnow"; }
  // As the user writes it; a float's own digits end before a double's.
  std::string setting() const {
    return formatted("%g", static_cast<double>(is_v2() ? rule.alpha : rule.tau));
  }
};

Result<std::vector<CurveRow>> planned_rows(const CurveFlags& flags) {
  TRY(SparseRule rule, sparse_rule(flags.attention));
  std::vector<CurveRow> rows;
  for (const float tau : flags.taus) {
    rule.kind = SparseRuleKind::kWinnow;
    rule.tau = tau;
    rows.push_back({rule});
  }
  for (const float alpha : flags.alphas) {
    rule.kind = SparseRuleKind::kV2;
    rule.alpha = alpha;
    rows.push_back({rule});
  }
  if (!rows.empty()) return rows;
  return fail(ErrorCode::kInvalidArgument, "--taus, --alphas: expected a setting, found none");
}

std::string to_text(const std::vector<CurveRow>& rows) {
  std::string text =
      "rule     setting  density  effective   time    mean KL     p99 KL  same first choice\n";
  for (const CurveRow& row : rows) {
    const AttentionStats& attention = row.found.stats.other;
    const DivergenceReport& report = row.found.report;
    text += formatted("%-7s %8s %8.4f %10.4f %6.3f %10.5f %10.5f %16.2f %%\n", row.rule_name(),
                      row.setting().c_str(), attention.density(), attention.effective_density(),
                      row.found.time_share(), report.mean_kl, report.p99_kl,
                      100 * report.top1_agreement);
  }
  return text;
}

boost::json::object to_json(const std::vector<CurveRow>& rows, int64_t num_tokens) {
  boost::json::array array;
  for (const CurveRow& row : rows) {
    const AttentionStats& attention = row.found.stats.other;
    const DivergenceReport& report = row.found.report;
    array.push_back({{"rule", row.rule_name()},
                     {"setting", std::stod(row.setting())},
                     {"density", attention.density()},
                     {"effective_density", attention.effective_density()},
                     {"attention_time", row.found.time_share()},
                     {"mean_kl", report.mean_kl},
                     {"p99_kl", report.p99_kl},
                     {"top1_agreement", report.top1_agreement},
                     {"ppl_dense", report.reference_perplexity},
                     {"ppl_sparse", report.other_perplexity}});
  }
  return {{"tokens", num_tokens},
          {"positions", rows.front().found.report.num_positions},
          {"rows", std::move(array)}};
}

CurvePlot to_plot(const std::vector<CurveRow>& rows, int64_t num_tokens) {
  CurvePlot plot{
      .title = formatted("Sparse attention, %lld tokens", static_cast<long long>(num_tokens)),
      .x_label = "effective density (multiply-adds / those of dense attention)",
      .y_label = "mean KL (nats)",
      .curves = {}};
  for (const CurveRow& row : rows) {
    const char* name = row.is_v2() ? "v2, alpha" : "winnow, tau";
    if (plot.curves.empty() || plot.curves.back().name != name) plot.curves.push_back({name, {}});
    plot.curves.back().points.push_back(
        {row.found.stats.other.effective_density(), row.found.report.mean_kl, row.setting()});
  }
  return plot;
}

}  // namespace

Result<ExitCode> cmd_eval_curve(Arguments args, Console& console) {
  CurveFlags flags;
  FlagSet set("eval curve",
              "Quality against cost of sparse attention on a text, setting by setting.",
              kEvalCurveFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(std::vector<CurveRow> rows, planned_rows(flags));
  TRY(const std::string text, read_eval_text(flags.text, console));
  flags.model.num_contexts = 2;
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<TokenId> ids, encode_eval_text(flags.text, text, loaded, 2));

  const ComparedPositions positions =
      compared_positions(rows.front().rule, std::ssize(ids), flags.num_positions);
  for (CurveRow& row : rows) {
    console.note(prompt_attention_name(row.rule) + " ...");
    TRY(row.found, compare_attention(loaded, ids, positions, row.rule, console));
  }
  console.out.write(flags.json ? json_line(to_json(rows, std::ssize(ids))) : to_text(rows));
  if (flags.svg_file) {
    TRY_STATUS(write_file(*flags.svg_file, curve_svg(to_plot(rows, std::ssize(ids)))));
  }
  return ExitCode::kOk;
}

}  // namespace winnow
