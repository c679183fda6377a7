// winnow eval needle: whether sparse attention finds the numbers in a text that dense attention
// finds.
#include <optional>
#include <vector>

#include "base/escape.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/filler_text.h"
#include "cli/interrupt.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/needle_file.h"
#include "cli/needle_report.h"
#include "cli/output_file.h"
#include "cli/progress_line.h"
#include "cli/text_input.h"
#include "engine/sequence.h"

namespace winnow {
namespace {

struct NeedleFlags {
  ModelFlags model;
  AttentionFlags attention{.attention = "sparse"};
  std::optional<std::string> file;
  std::vector<std::string> ids_files;
  std::vector<int64_t> lengths = {4096, 8192};
  int64_t num_seeds = 1;
  int64_t num_needles = 10;
  std::optional<std::string> svg;
  bool json = false;
};

constexpr const char* kEvalNeedleFooter =
    "Numbers are planted in a text. Some are asked for after it, where rows are dense; others the\n"
    "text itself repeats far from where they stood first: their digits count as right where they\n"
    "are the likeliest tokens. The rows of the second kind are sparse in prompts of 4096 tokens "
    "or\n"
    "more. Dense attention reads the same prompts.\n";

void add_flags(FlagSet& set, NeedleFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  set.text("-f,--file", flags.file, "text to plant them in; - reads stdin [built-in prose]");
  set.texts("--ids", flags.ids_files, "JSON file with a whole prompt; may be given several times");
  set.integers("--lengths", flags.lengths, {256, int64_t{1} << 26}, "tokens [4096,8192]");
  set.integer("--seeds", flags.num_seeds, {1, 1000}, "prompts of each length [1]");
  set.integer("--needles", flags.num_needles, {1, kMaxNeedles}, "numbers of each kind [10]");
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention, AttentionHelp::kMain);
  set.text("--svg", flags.svg, "write a heat map of length and depth to this file");
  set.toggle("--json", flags.json, "print one JSON object");
  set.toggle("-q,--quiet", quiet, "no progress on stderr");
}

struct NamedPrompt {
  std::string name;
  NeedlePrompt prompt;
};

Result<std::vector<NamedPrompt>> prompts_of_files(const NeedleFlags& flags,
                                                  const LoadedModel& loaded, Console& console) {
  std::vector<NamedPrompt> prompts;
  for (const std::string& path : flags.ids_files) {
    TRY(const std::string text, read_text_file(path, console.in));
    TRY(NeedlePrompt prompt,
        needle_prompt_from_json(text, loaded.model->config().vocab_size, input_name(path)));
    prompts.push_back({path, std::move(prompt)});
  }
  return prompts;
}

Result<std::string> filler_of(const NeedleFlags& flags, Console& console) {
  if (!flags.file) return std::string(builtin_prose());
  TRY(std::string bytes, read_text_file(*flags.file, console.in));
  TRY(DecodedText decoded, decode_text(std::move(bytes), input_name(*flags.file)));
  if (!decoded.text.empty()) return std::move(decoded.text);
  return fail(ErrorCode::kInvalidArgument, "%s: expected some text, found none",
              escaped(input_name(*flags.file)).c_str());
}

Result<std::vector<NamedPrompt>> make_prompts(const NeedleFlags& flags, const LoadedModel& loaded,
                                              const std::string& filler) {
  TRY(const PromptFrame frame, prompt_frame(loaded.model->file().metadata(), *loaded.tokenizer));
  std::vector<NamedPrompt> prompts;
  for (const int64_t length : flags.lengths) {
    for (int64_t seed = 0; seed < flags.num_seeds; ++seed) {
      TRY(NeedlePrompt prompt,
          make_needle_prompt(*loaded.tokenizer, frame, filler,
                             {length, flags.num_needles, static_cast<uint64_t>(seed)}));
      prompts.push_back({"seed " + std::to_string(seed), std::move(prompt)});
    }
  }
  return prompts;
}

// Right digits under one way of attending, in the order of the prompt's needles.
struct Found {
  std::vector<int64_t> after;
  std::vector<int64_t> inside;
  AttentionStats attention;
};

// The text is read once and the questions follow it one after the other.
Result<Found> find_needles(Engine& engine, const NeedlePrompt& prompt,
                           const std::optional<SparseRule>& attention, Console& console) {
  const int64_t num_tokens = std::ssize(prompt.ids);
  int64_t first_scored = num_tokens - 1;
  for (const RecalledNeedle& needle : prompt.recalled_inside) {
    first_scored = std::min(first_scored, needle.position - 1);
  }
  const std::unique_ptr<Sequence> sequence = engine.new_sequence();
  GenerateOptions options;
  options.sparse = attention;
  options.reuse = PrefixReuse::kExact;
  options.cancel = &interrupt::flag();
  ProgressLine progress(console, num_tokens);
  options.on_prefill = [&](const PrefillProgress& state) { progress.update(state); };
  TRY(const ScoredText scored,
      engine.score(*sequence, prompt.ids, num_tokens - first_scored, options));
  progress.finish();
  options.on_prefill = {};

  Found found;
  found.attention = scored.attention;
  for (const RecalledNeedle& needle : prompt.recalled_inside) {
    const auto before = static_cast<size_t>(needle.position - 1 - first_scored);
    found.inside.push_back(
        num_right(needle.answer, std::span(scored.top1).subspan(before, needle.answer.size())));
  }
  for (const AskedNeedle& needle : prompt.asked_after) {
    std::vector<TokenId> asked = prompt.ids;
    asked.insert(asked.end(), needle.question.begin(), needle.question.end());
    options.max_new_tokens = std::ssize(needle.answer);
    TRY(const Generation generation, engine.generate(*sequence, asked, options));
    if (generation.finish == FinishReason::kCancelled) {
      return fail(ErrorCode::kInterrupted, "cancelled during the answer");
    }
    found.after.push_back(num_right(needle.answer, generation.tokens));
  }
  return found;
}

NeedleResult result_of(const NamedPrompt& named, const Found& dense, const Found& sparse) {
  const NeedlePrompt& prompt = named.prompt;
  NeedleResult result{.name = named.name,
                      .num_tokens = std::ssize(prompt.ids),
                      .dense = dense.attention,
                      .sparse = sparse.attention};
  const auto depth = [&](int64_t position) {
    return static_cast<double>(position) / static_cast<double>(result.num_tokens);
  };
  for (size_t i = 0; i < prompt.asked_after.size(); ++i) {
    const AskedNeedle& needle = prompt.asked_after[i];
    result.cells.push_back({NeedleKind::kAskedAfter, depth(needle.needle),
                            std::ssize(needle.answer), dense.after[i], sparse.after[i]});
  }
  for (size_t i = 0; i < prompt.recalled_inside.size(); ++i) {
    const RecalledNeedle& needle = prompt.recalled_inside[i];
    result.cells.push_back({NeedleKind::kRecalledInside, depth(needle.needle),
                            std::ssize(needle.answer), dense.inside[i], sparse.inside[i]});
  }
  return result;
}

// Recalls whose rows the rule leaves dense say nothing about it.
void note_dense_recalls(const NamedPrompt& named, const SparseRule& rule, Console& console) {
  const int64_t end = rule.sparse_end(std::ssize(named.prompt.ids));
  int64_t num_dense = 0;
  for (const RecalledNeedle& needle : named.prompt.recalled_inside) {
    num_dense += needle.position <= rule.dense_tokens || needle.position > end;
  }
  if (num_dense == 0) return;
  console.note(escaped(named.name) + ", " + std::to_string(named.prompt.ids.size()) + " tokens: " +
               std::to_string(num_dense) + " of the numbers recalled inside stand in dense rows");
}

Status check(const NeedleFlags& flags) {
  if (flags.ids_files.empty() || !flags.file) return Ok{};
  return fail(ErrorCode::kInvalidArgument, "text: expected either -f or --ids, found both");
}

Result<std::vector<NeedleResult>> run_all(const LoadedModel& loaded,
                                          std::span<const NamedPrompt> prompts,
                                          const std::optional<SparseRule>& attention,
                                          Console& console) {
  std::vector<NeedleResult> results;
  for (const NamedPrompt& named : prompts) {
    if (attention) note_dense_recalls(named, *attention, console);
    TRY(const Found dense, find_needles(*loaded.engine, named.prompt, std::nullopt, console));
    TRY(const Found sparse, find_needles(*loaded.engine, named.prompt, attention, console));
    results.push_back(result_of(named, dense, sparse));
  }
  return results;
}

}  // namespace

Result<ExitCode> cmd_eval_needle(Arguments args, Console& console) {
  NeedleFlags flags;
  FlagSet set("eval needle", "Plants numbers in texts and counts those found again.",
              kMoreAttentionFlags + std::string(kEvalNeedleFooter));
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check(flags));
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const std::string filler, filler_of(flags, console));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const std::vector<NamedPrompt> prompts, flags.ids_files.empty()
                                                  ? make_prompts(flags, loaded, filler)
                                                  : prompts_of_files(flags, loaded, console));
  TRY(const std::vector<NeedleResult> results, run_all(loaded, prompts, attention, console));
  console.out.write(flags.json ? json_line(needle_json(results)) : needle_table(results));
  if (flags.svg) {
    TRY_STATUS(write_file(*flags.svg, needle_svg(results)));
  }
  return ExitCode::kOk;
}

}  // namespace winnow
