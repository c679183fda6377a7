// winnow eval layers: what each layer and head keeps of a text, and what it loses.
#include <vector>

#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/eval_text.h"
#include "cli/formatted.h"
#include "cli/head_report.h"
#include "cli/json_output.h"
#include "cli/prompt_reading.h"

namespace winnow {
namespace {

struct LayersFlags {
  ModelFlags model;
  EvalTextFlags text;
  AttentionFlags attention{.attention = "sparse"};
  int64_t probe_period = 16;
  bool json = false;
};

constexpr const char* kEvalLayersFooter =
    "Reads the text as a prompt. Tiles that are probed are computed densely as well, from the "
    "same\n"
    "queries, keys and values: mass kept is the share of the dense softmax that lies on the keys\n"
    "kept, output error is |out - dense out| / |dense out|, correction included.\n";

void add_flags(FlagSet& set, LayersFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_eval_text_flags(set, flags.text);
  set.integer("--probe", flags.probe_period, {0, int64_t{1} << 30},
              "probe one tile in so many; 0 = none [16]");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention);
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

}  // namespace

Result<ExitCode> cmd_eval_layers(Arguments args, Console& console) {
  LayersFlags flags;
  FlagSet set("eval layers", "Tells what each layer and head keeps and loses on a text.",
              kEvalLayersFooter);
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const SparseRule rule, sparse_only(flags.attention));
  TRY(const std::string text, read_eval_text(flags.text, console));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<TokenId> ids, encode_eval_text(flags.text, text, loaded, 1));
  HeadReport heads(flags.probe_period);
  TRY(const AttentionStats stats, read_sparsely(loaded, ids, rule, heads, console));
  if (flags.json) {
    console.out.write(
        json_line(boost::json::object{{"tokens", ids.size()},
                                      {"density", stats.density()},
                                      {"effective_density", stats.effective_density()},
                                      {"heads", heads.to_json()}}));
  } else {
    console.out.write(heads.to_text() +
                      formatted("density %.4f, effective density %.4f, dense rows included\n",
                                stats.density(), stats.effective_density()));
  }
  return ExitCode::kOk;
}

}  // namespace winnow
