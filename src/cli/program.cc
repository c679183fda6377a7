// Finds the verb and turns what it returns into messages and an exit code.
#include <array>
#include <exception>
#include <new>
#include <optional>
#include <string_view>

#include "base/escape.h"
#include "cli/commands.h"

namespace winnow {
namespace {

struct Verb {
  std::string_view name;  // one or two words
  std::string_view summary;
  Result<ExitCode> (*run)(Arguments args, Console& console);
};

// Of two verbs that begin alike the longer stands first.
constexpr std::array kVerbs = {
    Verb{"run", "answer one prompt", cmd_run},
    Verb{"chat", "hold a conversation", cmd_chat},
    Verb{"serve", "answer the OpenAI HTTP API", cmd_serve},
    Verb{"map", "draw which blocks of a prompt were kept", cmd_map},
    Verb{"calibrate", "profile a model's attention", cmd_calibrate},
    Verb{"inspect", "print what a model file holds and needs", cmd_inspect},
    Verb{"tokenize", "text on stdin to token ids", cmd_tokenize},
    Verb{"detokenize", "token ids on stdin to text", cmd_detokenize},
    Verb{"eval kl", "sparse attention beside dense attention", cmd_eval_kl},
    Verb{"eval curve", "quality against cost of sparse attention", cmd_eval_curve},
    Verb{"eval layers", "what each head keeps and loses", cmd_eval_layers},
    Verb{"eval needle", "recall of planted numbers, dense and sparse", cmd_eval_needle},
    Verb{"eval ppl", "perplexity of a text", cmd_eval_ppl},
    Verb{"eval ruler", "RULER's synthetic tasks, dense and sparse", cmd_eval_ruler},
    Verb{"bench attention", "measure the attention operator", cmd_bench_attention},
    Verb{"bench peak", "measure the machine itself", cmd_bench_peak},
    Verb{"bench serve", "measure a server under load", cmd_bench_serve},
    Verb{"bench", "measure prompt and answer speed", cmd_bench},
    Verb{"version", "print version, instruction sets and threads", cmd_version},
};

constexpr std::string_view kEpilogue = R"(
'winnow VERB --help' explains a verb. The answer goes to stdout, everything else to stderr.

Environment: WINNOW_MODEL and WINNOW_THREADS stand in for -m and -t; WINNOW_ISA forces an
instruction set (scalar, avx2, avx512, avx512_bf16, amx, neon); NO_COLOR turns colour off.
Exit codes: 0 ok, 1 failed while running, 2 wrong usage, 3 file missing or unusable,
4 not enough memory, 130 interrupted.
)";

std::string verb_lines(std::string_view beginning) {
  std::string text;
  for (const Verb& verb : kVerbs) {
    if (!verb.name.starts_with(beginning)) continue;
    text += "  " + std::string(verb.name) + std::string(17 - verb.name.size(), ' ') +
            std::string(verb.summary) + "\n";
  }
  return text;
}

std::string program_help() {
  return "winnow: large language models on ordinary CPUs\n\nUsage: winnow VERB ...\n\n" +
         verb_lines("") + std::string(kEpilogue);
}

bool asks_for_help(std::string_view arg) { return arg == "--help" || arg == "-h" || arg == "help"; }

// The help that `args` ask for before any verb is known; none if they ask for something else.
std::optional<std::string> help_asked_for(Arguments args) {
  if (asks_for_help(args[0])) return program_help();
  if (args.size() < 2 || !asks_for_help(args[1])) return std::nullopt;
  // The first of two words: "eval".
  const std::string verbs = verb_lines(args[0] + " ");
  if (verbs.empty()) return std::nullopt;
  return "Usage: winnow " + args[0] + " VERB ...\n\n" + verbs + "\n'winnow " + args[0] +
         " VERB --help' explains a verb.\n";
}

std::string verb_names() {
  std::string names;
  for (const Verb& verb : kVerbs) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

// How many of `args` name `verb`; 0 if they name another.
size_t words_matching(const Verb& verb, Arguments args) {
  std::string joined;
  for (size_t count = 1; count <= 2 && count <= args.size(); ++count) {
    joined += (joined.empty() ? "" : " ") + args[count - 1];
    if (joined == verb.name) return count;
  }
  return 0;
}

ExitCode report(const Error& error, std::string_view verb, Console& console) {
  const ExitCode code = exit_code(error.code);
  std::string text = "winnow";
  if (!verb.empty()) text += " " + std::string(verb);
  text += ": " + error.message + "\n";
  if (code == ExitCode::kUsage) {
    text += "Try 'winnow " + (verb.empty() ? "" : std::string(verb) + " ") + "--help'.\n";
  }
  console.err.write(text);
  return code;
}

Error unknown_verb(Arguments args) {
  const bool eval = args[0] == "eval";
  std::string found = args[0];
  if (eval && args.size() > 1) found += " " + args[1];
  return fail(ErrorCode::kInvalidArgument, "verb: expected one of %s, found '%s'",
              verb_names().c_str(), escaped(found, 60).c_str());
}

Result<ExitCode> run_verb(const Verb& verb, Arguments args, Console& console) {
  // Libraries may throw where memory runs out; nothing of ours does.
  try {
    TRY(const ExitCode code, verb.run(args, console));
    TRY_STATUS(console.out.status("stdout"));
    return code;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "memory: expected more, found none left");
  } catch (const std::exception& error) {
    return fail(ErrorCode::kIo, "unexpected failure: %s", error.what());
  }
}

}  // namespace

Result<bool> parse_or_help(FlagSet& flags, Arguments args, Console& console) {
  TRY(const FlagSet::Outcome outcome, flags.parse(args));
  if (outcome == FlagSet::Outcome::kParsed) return true;
  console.out.write(flags.help());
  return false;
}

ExitCode run_program(Arguments args, Console& console) {
  if (args.empty()) {
    console.err.write(program_help());
    return ExitCode::kUsage;
  }
  const std::string version = "version";
  if (args[0] == "--version") args = {&version, 1};
  for (const Verb& verb : kVerbs) {
    const size_t words = words_matching(verb, args);
    if (words == 0) continue;
    const Result<ExitCode> result = run_verb(verb, args.subspan(words), console);
    return result.ok() ? *result : report(result.error(), verb.name, console);
  }
  if (const std::optional<std::string> help = help_asked_for(args)) {
    console.out.write(*help);
    const Status written = console.out.status("stdout");
    return written.ok() ? ExitCode::kOk : report(written.error(), "", console);
  }
  return report(unknown_verb(args), "", console);
}

}  // namespace winnow
