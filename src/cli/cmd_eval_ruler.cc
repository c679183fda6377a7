// winnow eval ruler: RULER's synthetic tasks, answered with dense and with sparse attention.
#include <algorithm>
#include <optional>
#include <vector>

#include "base/escape.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/filler_text.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/progress_line.h"
#include "cli/ruler_report.h"
#include "cli/ruler_tasks.h"
#include "engine/sequence.h"

namespace winnow {
namespace {

struct RulerFlags {
  ModelFlags model;
  AttentionFlags attention{.attention = "sparse"};
  std::string tasks = "all";
  int64_t length = 4096;
  int64_t num_samples = 10;
  int64_t seed = 0;
  bool json = false;
};

constexpr const char* kEvalRulerFooter =
    "Tasks: niah_single_1 to 3, niah_multikey_1 to 3, niah_multivalue, niah_multiquery, vt, cwe,\n"
    "fwe (arXiv 2404.06654), in the model's chat template. A score is the share of the expected\n"
    "strings that the answer contains. Both ways of attending answer the same prompts; the\n"
    "difference is sparse minus dense, with the bootstrap's 95 % interval.\n";

void add_flags(FlagSet& set, RulerFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  set.text("--tasks", flags.tasks, "names, separated by commas [all]");
  set.integer("--length", flags.length, {256, int64_t{1} << 26},
              "tokens of a prompt and its answer [4096]");
  set.integer("--samples", flags.num_samples, {1, 100000}, "prompts of each task [10]");
  set.integer("--seed", flags.seed, {0, int64_t{1} << 40}, "chooses the prompts [0]");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention, AttentionHelp::kMain);
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

// Indices in ruler_tasks().
Result<std::vector<size_t>> chosen_tasks(const std::string& names) {
  const std::span<const RulerTask> tasks = ruler_tasks();
  std::vector<size_t> chosen;
  if (names == "all") {
    for (size_t i = 0; i < tasks.size(); ++i) chosen.push_back(i);
    return chosen;
  }
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    const auto task = std::find_if(tasks.begin(), tasks.end(),
                                   [&](const RulerTask& known) { return known.name == name; });
    if (task == tasks.end()) {
      std::string known = "all";
      for (const RulerTask& each : tasks) known += ", " + std::string(each.name);
      return fail(ErrorCode::kInvalidArgument, "--tasks: expected some of %s, found '%s'",
                  known.c_str(), escaped(name, 60).c_str());
    }
    chosen.push_back(static_cast<size_t>(task - tasks.begin()));
    begin = end + 1;
  }
  return chosen;
}

struct RulerAnswer {
  std::string text;
  AttentionStats attention;
};

Result<RulerAnswer> answer_of(const LoadedModel& loaded, const RulerPrompt& prompt,
                              int64_t max_tokens, const std::optional<SparseRule>& attention,
                              Console& console) {
  ProgressLine progress(console, std::ssize(prompt.ids));
  GenerateOptions options;
  options.sparse = attention;
  options.max_new_tokens = max_tokens;
  options.cancel = &interrupt::flag();
  const std::span<const TokenId> end_tokens = loaded.tokenizer->end_tokens();
  options.end_tokens.assign(end_tokens.begin(), end_tokens.end());
  options.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  const std::unique_ptr<Sequence> sequence = loaded.engine->new_sequence();
  TRY(const Generation generation, loaded.engine->generate(*sequence, prompt.ids, options));
  if (generation.finish == FinishReason::kCancelled) {
    return fail(ErrorCode::kInterrupted, "cancelled during a task");
  }
  return RulerAnswer{loaded.tokenizer->decode(generation.tokens, false), generation.attention};
}

// Of task and sample number alone, so that a task's prompts do not depend on the others.
uint64_t sample_seed(const RulerFlags& flags, size_t task_idx, int64_t sample_idx) {
  const auto sample = static_cast<uint64_t>(flags.seed + sample_idx);
  return RandomStream(sample * ruler_tasks().size() + task_idx).next_u64();
}

Result<std::vector<RulerResult>> run_tasks(const LoadedModel& loaded, const RulerFlags& flags,
                                           std::span<const size_t> task_idxs, Console& console) {
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const PromptFrame frame, prompt_frame(loaded.model->file().metadata(), *loaded.tokenizer));
  std::vector<RulerResult> results;
  for (const size_t task_idx : task_idxs) {
    const RulerTask& task = ruler_tasks()[task_idx];
    for (int64_t i = 0; i < flags.num_samples; ++i) {
      TRY(const RulerPrompt prompt,
          make_ruler_prompt(task, *loaded.tokenizer, frame, builtin_prose(), flags.length,
                            sample_seed(flags, task_idx, i)));
      TRY(RulerAnswer dense,
          answer_of(loaded, prompt, task.max_answer_tokens, std::nullopt, console));
      TRY(RulerAnswer sparse,
          answer_of(loaded, prompt, task.max_answer_tokens, attention, console));
      results.push_back({.task = task.name,
                         .num_tokens = std::ssize(prompt.ids),
                         .references = prompt.references,
                         .dense_answer = dense.text,
                         .sparse_answer = sparse.text,
                         .dense_score = ruler_score(dense.text, prompt.references),
                         .sparse_score = ruler_score(sparse.text, prompt.references),
                         .sparse = sparse.attention});
    }
  }
  return results;
}

}  // namespace

Result<ExitCode> cmd_eval_ruler(Arguments args, Console& console) {
  RulerFlags flags;
  FlagSet set("eval ruler", "Answers RULER's synthetic tasks with dense and sparse attention.",
              kMoreAttentionFlags + std::string(kEvalRulerFooter));
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const std::vector<size_t> task_idxs, chosen_tasks(flags.tasks));
  TRY_STATUS(chosen_attention(flags.attention));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<RulerResult> results, run_tasks(loaded, flags, task_idxs, console));
  console.out.write(flags.json ? json_line(ruler_json(results)) : ruler_table(results));
  return ExitCode::kOk;
}

}  // namespace winnow
