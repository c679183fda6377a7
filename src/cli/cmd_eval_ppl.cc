// winnow eval ppl: how well the model predicts a text.
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/eval_text.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/progress_line.h"

namespace winnow {
namespace {

struct EvalFlags {
  ModelFlags model;
  EvalTextFlags text;
  AttentionFlags attention;
  int64_t num_last = std::numeric_limits<int64_t>::max();
  bool logprobs = false;
  bool json = false;
};

constexpr const char* kEvalPplFooter =
    "The first token is given; every later one is predicted from all before it, with the\n"
    "arithmetic of prompts. --json prints the keys ppl and tokens, and with --logprobs\n"
    "target_logprob (of each next token) and top1 (the likeliest token after each position).\n";

void add_flags(FlagSet& set, EvalFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_eval_text_flags(set, flags.text);
  set.integer("--last", flags.num_last, {2, std::numeric_limits<int64_t>::max()},
              "score the last N of the tokens read, after all before them [all]");
  set.toggle("--logprobs", flags.logprobs, "with --json, also what was found at each position");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention);
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

Status check(const EvalFlags& flags) {
  if (flags.logprobs && !flags.json) {
    return fail(ErrorCode::kInvalidArgument, "--logprobs: expected --json beside it, found none");
  }
  return Ok{};
}

Result<ScoredText> score(const LoadedModel& loaded, std::span<const TokenId> ids, int64_t num_last,
                         const std::optional<SparseRule>& attention, Console& console) {
  ProgressLine progress(console, static_cast<int64_t>(ids.size()));
  GenerateOptions options;
  options.sparse = attention;
  options.cancel = &interrupt::flag();
  options.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  return loaded.engine->score(ids, num_last, options);
}

}  // namespace

Result<ExitCode> cmd_eval_ppl(Arguments args, Console& console) {
  EvalFlags flags;
  FlagSet set("eval ppl", "Prints the perplexity of a text under a model.", kEvalPplFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check(flags));
  TRY(const std::string text, read_eval_text(flags.text, console));
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<TokenId> ids, encode_eval_text(flags.text, text, loaded, 2));
  TRY(const ScoredText scored, score(loaded, ids, flags.num_last, attention, console));

  const std::vector<float>& logprobs = scored.target_logprob;
  const double total = std::accumulate(logprobs.begin(), logprobs.end(), 0.0);
  const double perplexity = std::exp(-total / static_cast<double>(logprobs.size()));
  if (!flags.json) {
    char line[96];
    std::snprintf(line, sizeof(line), "perplexity %.4f over %zu tokens\n", perplexity,
                  scored.top1.size());
    console.out.write(line);
    return ExitCode::kOk;
  }
  boost::json::object json{{"ppl", perplexity},
                           {"tokens", scored.top1.size()},
                           {"density", scored.attention.density()},
                           {"effective_density", scored.attention.effective_density()}};
  if (flags.logprobs) {
    json["target_logprob"] = boost::json::array(logprobs.begin(), logprobs.end());
    json["top1"] = json_ids(scored.top1);
  }
  console.out.write(json_line(json));
  return ExitCode::kOk;
}

}  // namespace winnow
