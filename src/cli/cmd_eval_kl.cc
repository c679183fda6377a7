// winnow eval kl: how far sparse attention moves the model's predictions from those of dense
// attention.
#include <optional>
#include <vector>

#include "cli/attention_comparison.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/eval_text.h"
#include "cli/formatted.h"
#include "cli/json_output.h"

namespace winnow {
namespace {

struct KlFlags {
  ModelFlags model;
  EvalTextFlags text;
  AttentionFlags attention{.attention = "sparse"};
  int64_t num_positions = 1024;
  int64_t decoded = 0;  // 0 = the text is a prompt
  bool json = false;
};

constexpr const char* kEvalKlFooter =
    "Runs the text twice as a prompt, with dense attention and as --attention says, and compares\n"
    "the next-token distributions at the last positions whose rows may be sparse. --attention\n"
    "dense compares two dense runs. With --decode the last tokens are run one by one, as an\n"
    "answer to what comes before them, a dense prompt: dense against sparse decode. Density is\n"
    "the share of dense attention's pairs of tokens that are multiplied; effective density counts\n"
    "the choice of blocks as well.\n";

void add_flags(FlagSet& set, KlFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_eval_text_flags(set, flags.text);
  set.integer("--last", flags.num_positions, {1, int64_t{1} << 30},
              "positions compared, up to the dense tail [1024]");
  set.integer("--decode", flags.decoded, {0, int64_t{1} << 30},
              "run the last N tokens one by one, and compare sparse decode [0]");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention);
  add_decode_tau_flag(set, flags.attention);
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
          {"effective_density", attention.effective_density()}};
}

boost::json::object to_json(const AttentionComparison& found) {
  const AttentionStats& attention = found.stats.other;
  boost::json::object json = to_json(found.report, attention);
  json["select_s"] = attention.select_s;
  json["attend_s"] = attention.attend_s;
  json["attention_time"] = found.time_share();
  return json;
}

boost::json::object to_json(const AnswerComparison& found) {
  const auto positions = static_cast<double>(found.report.num_positions);
  boost::json::object json = to_json(found.report, found.stats.other.attention);
  json["token_ms_dense"] = found.stats.reference.ms / positions;
  json["token_ms_sparse"] = found.stats.other.ms / positions;
  json["step_time"] = found.time_share();
  return json;
}

std::string to_text(const DivergenceReport& report, const AttentionStats& attention,
                    double time_share) {
  return formatted("mean KL            %.5f\n", report.mean_kl) +
         formatted("p99 KL             %.5f\n", report.p99_kl) +
         formatted("same first choice  %.2f %%\n", 100 * report.top1_agreement) +
         formatted("perplexity dense   %.4f\n", report.reference_perplexity) +
         formatted("perplexity sparse  %.4f\n", report.other_perplexity) +
         formatted("density            %.4f\n", attention.density()) +
         formatted("effective density  %.4f\n", attention.effective_density()) +
         formatted("time / dense time  %.4f\n", time_share);
}

// Where the answer begins, at a whole number of pages: it has flags.decoded tokens at least.
Result<int64_t> answer_begin(const KlFlags& flags, const SparseRule& rule, int64_t num_tokens) {
  const int64_t begin = (num_tokens - 1 - flags.decoded) / kPageTokens * kPageTokens;
  if (num_tokens - 1 > flags.decoded && begin >= rule.dense_tokens) return begin;
  return fail(ErrorCode::kInvalidArgument,
              "--decode: expected a text of %d tokens and %lld more, found %lld", rule.dense_tokens,
              static_cast<long long>(flags.decoded + 1), static_cast<long long>(num_tokens));
}

}  // namespace

Result<ExitCode> cmd_eval_kl(Arguments args, Console& console) {
  KlFlags flags;
  FlagSet set("eval kl", "Compares sparse attention with dense attention on a text.",
              kEvalKlFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const SparseRule rule, sparse_rule(flags.attention));
  if (flags.decoded > 0 && rule.kind != SparseRuleKind::kWinnow) {
    return fail(ErrorCode::kInvalidArgument, "--decode: expected --sparse-rule winnow, found %s",
                flags.attention.rule.c_str());
  }
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const std::string text, read_eval_text(flags.text, console));
  flags.model.num_contexts = 2;
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<TokenId> ids, encode_eval_text(flags.text, text, loaded, 2));
  if (flags.decoded > 0) {
    TRY(const int64_t begin, answer_begin(flags, rule, std::ssize(ids)));
    TRY(const AnswerComparison found, compare_decode(loaded, ids, begin, rule, console));
    console.out.write(flags.json
                          ? json_line(to_json(found))
                          : to_text(found.report, found.stats.other.attention, found.time_share()));
    return ExitCode::kOk;
  }

  TRY(const AttentionComparison found,
      compare_attention(loaded, ids, compared_positions(rule, std::ssize(ids), flags.num_positions),
                        attention, console));
  console.out.write(flags.json ? json_line(to_json(found))
                               : to_text(found.report, found.stats.other, found.time_share()));
  return ExitCode::kOk;
}

}  // namespace winnow
