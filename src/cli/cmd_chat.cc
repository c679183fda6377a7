// winnow chat: a conversation. What the cache holds of it is not read again.
#include <unistd.h>

#include <limits>
#include <optional>

#include "base/escape.h"
#include "cli/answer.h"
#include "cli/attention_flags.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/sampling_flags.h"
#include "cli/text_input.h"
#include "engine/sequence.h"
#include "tokenizer/chat_prompt.h"

namespace winnow {
namespace {

struct ChatFlags {
  ModelFlags model;
  SamplingFlags sampling;
  AttentionFlags attention;
  std::optional<std::string> system;
  int64_t max_new_tokens = -1;
  std::string prefix_reuse = "all";
};

constexpr const char* kChatFooter =
    "Commands in the conversation: /read FILE, /regen, /clear, /help, /exit.\n"
    "The first Ctrl+C stops the answer, the second ends the program.\n";

constexpr std::string_view kCommandHelp =
    "/read FILE  puts a file before your next message\n"
    "/regen      answers the last message again\n"
    "/clear      forgets the conversation\n"
    "/exit       ends the program (so does Ctrl+D)";

void add_flags(FlagSet& set, ChatFlags& flags, bool& quiet) {
  add_model_flag(set, flags.model);
  set.text("--system", flags.system, "the system message");
  set.integer("-n,--max-tokens", flags.max_new_tokens, {-1, std::numeric_limits<int64_t>::max()},
              "tokens of each answer at most; -1 = no limit [-1]");
  set.choice("--prefix-reuse", flags.prefix_reuse, {"all", "exact"},
             "exact reads earlier answers again, as a prompt [all]");
  add_sampling_flags(set, flags.sampling);
  add_engine_flags(set, flags.model);
  add_attention_flags(set, flags.attention, AttentionHelp::kMain);
  add_decode_flags(set, flags.attention);
  set.toggle("-q,--quiet", quiet, "no progress and no figures on stderr");
}

class Conversation {
 public:
  Conversation(const ChatFlags& flags, const LoadedModel& loaded, const ChatPrompt& prompt,
               const SamplerOptions& sampling, const std::optional<SparseRule>& attention,
               Console& console)
      : flags_(flags),
        loaded_(loaded),
        prompt_(prompt),
        sampling_(sampling),
        attention_(attention),
        console_(console),
        sequence_(loaded.engine->new_sequence()) {
    clear();
  }

  enum class Outcome { kGoOn, kExit };
  Outcome take_line(const std::string& line);

 private:
  Outcome command(const std::string& line);
  void clear();
  void read_file(const std::string& path);
  void regenerate();
  void say(const std::string& line);
  void respond();

  const ChatFlags& flags_;
  const LoadedModel& loaded_;
  const ChatPrompt& prompt_;
  SamplerOptions sampling_;
  std::optional<SparseRule> attention_;
  Console& console_;
  std::unique_ptr<Sequence> sequence_;
  boost::json::array messages_;
  std::string document_;  // read, and waiting for the message it belongs to
};

void Conversation::clear() {
  messages_.clear();
  document_.clear();
  if (flags_.system) messages_.push_back(chat_message("system", *flags_.system));
}

Conversation::Outcome Conversation::take_line(const std::string& line) {
  if (line.starts_with("/")) return command(line);
  if (!line.empty()) say(line);
  return Outcome::kGoOn;
}

Conversation::Outcome Conversation::command(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
  if (name == "/exit") return Outcome::kExit;
  if (name == "/clear") {
    clear();
  } else if (name == "/regen") {
    regenerate();
  } else if (name == "/read") {
    read_file(argument);
  } else if (name == "/help") {
    console_.err.write(std::string(kCommandHelp) + "\n");
  } else {
    console_.err.write("command: expected /read, /regen, /clear, /help or /exit, found '" +
                       escaped(name, 60) + "'\n");
  }
  return Outcome::kGoOn;
}

void Conversation::read_file(const std::string& path) {
  Result<std::string> bytes = read_text_file(path, console_.in);
  Result<DecodedText> decoded =
      bytes.ok() ? decode_text(std::move(bytes).value(), path) : Result<DecodedText>(bytes.error());
  if (!decoded.ok()) {
    console_.err.write("/read: " + decoded.error().message + "\n");
    return;
  }
  document_ = decoded->text;
  console_.note(std::to_string(document_.size()) + " bytes go before your next message");
}

void Conversation::regenerate() {
  if (messages_.empty() || messages_.back().at("role") != "assistant") {
    console_.err.write("/regen: expected an answer to replace, found none\n");
    return;
  }
  messages_.pop_back();
  ++sampling_.seed;
  respond();
}

void Conversation::say(const std::string& line) {
  Result<DecodedText> decoded = decode_text(line, "message");
  if (!decoded.ok()) {
    console_.err.write(decoded.error().message + "\n");
    return;
  }
  const std::string before = document_.empty() ? "" : document_ + "\n\n";
  messages_.push_back(chat_message("user", before + decoded->text));
  document_.clear();
  respond();
}

// Answers the last message. A message that cannot be answered is taken back.
void Conversation::respond() {
  AnswerRequest request{
      .sampling = sampling_,
      .stops = flags_.sampling.stops,
      .max_new_tokens = flags_.max_new_tokens,
      .reuse = flags_.prefix_reuse == "exact" ? PrefixReuse::kExact : PrefixReuse::kAll,
      .sparse = attention_};
  const auto try_answer = [&]() -> Result<Answer> {
    TRY(request.prompt, prompt_.encode(messages_));
    return answer(loaded_, *sequence_, request, console_);
  };
  const Result<Answer> answered = try_answer();
  if (!answered.ok()) {
    messages_.pop_back();
    console_.err.write("winnow chat: " + answered.error().message + "\n");
    return;
  }
  if (answered->generation.finish == FinishReason::kCancelled && answered->text.empty()) {
    messages_.pop_back();
    console_.note("the message is taken back; what was read of it stays in the cache");
    return;
  }
  console_.out.write("\n");
  console_.note(Console::styled(console_.err, "2", answer_summary(*answered)));
  messages_.push_back(chat_message("assistant", answered->text));
}

Result<ExitCode> converse(Conversation& conversation, Console& console) {
  LineReader reader(console.in);
  std::string line;
  const bool interactive = isatty(console.in) == 1 && !console.quiet;
  while (console.out.writable()) {
    if (interactive) console.err.write(Console::styled(console.err, "1", "> "));
    const LineReader::Outcome outcome = reader.next(line);
    if (outcome == LineReader::Outcome::kEnd) break;
    if (outcome == LineReader::Outcome::kInterrupted) {
      return fail(ErrorCode::kInterrupted, "interrupted");
    }
    if (conversation.take_line(line) == Conversation::Outcome::kExit) break;
    interrupt::reset();  // the Ctrl+C that stopped an answer is used up
  }
  return ExitCode::kOk;
}

}  // namespace

Result<ExitCode> cmd_chat(Arguments args, Console& console) {
  ChatFlags flags;
  FlagSet set("chat", "Holds a conversation; one line is one message.",
              kMoreAttentionFlags + std::string(kChatFooter));
  add_flags(set, flags, console.quiet);
  TRY(const bool go_on, parse_or_help(set, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY_STATUS(check_sampling_flags(flags.sampling));
  TRY(const std::optional<SparseRule> attention, chosen_attention(flags.attention));
  TRY(const LoadedModel loaded, load_model(flags.model, console));
  TRY(const ChatPrompt prompt,
      ChatPrompt::create(loaded.model->file().metadata(), *loaded.tokenizer));
  TRY(const SamplerOptions sampling,
      sampler_options(flags.sampling, loaded.tokenizer->vocab_size()));
  Conversation conversation(flags, loaded, prompt, sampling, attention, console);
  if (isatty(console.in) == 1) console.note("/help lists the commands, Ctrl+D ends.");
  return converse(conversation, console);
}

}  // namespace winnow
