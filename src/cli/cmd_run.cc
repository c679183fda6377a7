// winnow run: one prompt, one answer.
#include <limits>
#include <optional>

#include "cli/answer.h"
#include "cli/answer_pair.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/prompt_input.h"
#include "cli/sampling_flags.h"
#include "engine/sequence.h"
#include "tokenizer/chat_prompt.h"

namespace winnow {
namespace {

struct RunFlags {
  ModelFlags model;
  PromptFlags prompt;
  SamplingFlags sampling;
  AttentionFlags attention;
  std::optional<std::string> system;
  int64_t max_new_tokens = -1;
  bool compare = false;
  bool json = false;
};

constexpr const char* kRunFooter =
    "With neither -p nor -f the prompt is read from stdin. Bytes that are not UTF-8 become\n"
    "U+FFFD, unless --raw is given. Ctrl+C stops the answer; the exit code is then 130.\n\n"
    "Examples:\n"
    "  winnow run -m model.gguf -p 'Why is the sky blue?'\n"
    "  winnow run -m model.gguf -f report.txt -p 'What does it recommend?' -n 200\n";

void add_flags(FlagSet& set, RunFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  add_prompt_flags(set, flags.prompt);
  set.text("--system", flags.system, "the system message");
  set.integer("-n,--max-tokens", flags.max_new_tokens, {-1, std::numeric_limits<int64_t>::max()},
              "tokens of the answer at most; -1 = no limit [-1]");
  add_sampling_flags(set, flags.sampling);
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention, AttentionHelp::kMain);
  add_decode_flags(set, flags.attention);
  set.toggle("--compare", flags.compare, "answer with dense and with sparse attention");
  set.toggle("--json", flags.json, "print one JSON object with text, tokens and timings");
  set.toggle("-q,--quiet", quiet, "no progress and no summary on stderr");
}

Result<std::vector<TokenId>> encode_prompt(const RunFlags& flags, const std::string& prompt,
                                           const LoadedModel& loaded) {
  if (flags.prompt.raw) return loaded.tokenizer->encode_raw_prompt(prompt);
  TRY(const ChatPrompt chat,
      ChatPrompt::create(loaded.model->file().metadata(), *loaded.tokenizer));
  boost::json::array messages;
  if (flags.system) messages.push_back(chat_message("system", *flags.system));
  messages.push_back(chat_message("user", prompt));
  return chat.encode(messages);
}

}  // namespace

Result<ExitCode> cmd_run(Arguments args, Console& console) {
  RunFlags flags;
  FlagSet set("run", "Answers one prompt; the answer streams to stdout.",
              kMoreAttentionFlags + std::string(kRunFooter));
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check_sampling_flags(flags.sampling));
  if (flags.prompt.raw && flags.system) {
    return fail(ErrorCode::kInvalidArgument,
                "--system: expected a chat prompt, found --raw, which has no messages");
  }
  if (flags.compare) {
    TRY_STATUS(sparse_only(flags.attention));
  }
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const std::string prompt, read_prompt(flags.prompt, console));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  AnswerRequest request;
  TRY(request.prompt, encode_prompt(flags, prompt, loaded));
  TRY(request.sampling, sampler_options(flags.sampling, loaded.tokenizer->vocab_size()));
  request.stops = flags.sampling.stops;
  request.max_new_tokens = flags.max_new_tokens;
  request.sparse = attention;
  request.print = !flags.json && !flags.compare;
  if (flags.compare) {
    TRY(const AnswerPair pair, compare_answers(loaded, request, console));
    console.out.write(flags.json ? json_line(pair_json(pair)) : pair_text(pair));
    return ExitCode::kOk;
  }

  const std::unique_ptr<Sequence> sequence = loaded.engine->new_sequence();
  TRY(const Answer answered, answer(loaded, *sequence, request, console));
  if (flags.json) {
    boost::json::object json = answer_json(answered);
    json["seed"] = request.sampling.seed;
    console.out.write(json_line(json));
  } else if (!answered.text.empty() && !answered.text.ends_with('\n')) {
    console.out.write("\n");
  }
  console.note(answer_summary(answered));
  return answered.cancelled() ? ExitCode::kInterrupted : ExitCode::kOk;
}

}  // namespace winnow
