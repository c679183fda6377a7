#include "cli/prompt_input.h"

#include <unistd.h>

#include "base/escape.h"
#include "cli/text_input.h"

namespace winnow {
namespace {

Result<std::string> read_source(const PromptFlags& flags, Console& console) {
  if (flags.file) return read_text_file(*flags.file, console.in);
  if (isatty(console.in) == 1) console.note("Reading the prompt; Ctrl+D ends it.");
  return read_all(console.in, "standard input");
}

// `bytes` as text, unless the prompt is raw.
Result<std::string> as_text(std::string bytes, const std::string& name, bool raw,
                            Console& console) {
  if (raw) return bytes;
  TRY(DecodedText decoded, decode_text(std::move(bytes), name));
  if (decoded.replaced > 0) {
    console.note(escaped(name) + ": " + std::to_string(decoded.replaced) +
                 " parts are not UTF-8 and were replaced");
  }
  return std::move(decoded.text);
}

}  // namespace

void add_prompt_flags(FlagSet& flags, PromptFlags& target) {
  flags.text("-p,--prompt", target.text, "the prompt; with -f, the question about the file");
  flags.text("-f,--file", target.file, "a file with the prompt; - reads stdin");
  flags.toggle("--raw", target.raw, "continue the text as it is, without chat template");
}

Result<std::string> read_prompt(const PromptFlags& flags, Console& console) {
  std::string prompt;
  if (flags.file || !flags.text) {
    TRY(std::string bytes, read_source(flags, console));
    const std::string name = input_name(flags.file.value_or("-"));
    TRY(prompt, as_text(std::move(bytes), name, flags.raw, console));
  }
  if (flags.text) {
    TRY(const std::string text, as_text(*flags.text, "--prompt", flags.raw, console));
    if (!prompt.empty() && !flags.raw) prompt += prompt.ends_with('\n') ? "\n" : "\n\n";
    prompt += text;
  }
  if (prompt.empty()) {
    return fail(ErrorCode::kInvalidArgument, "prompt: expected some text, found none");
  }
  return prompt;
}

}  // namespace winnow
