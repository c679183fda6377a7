// winnow tokenize and winnow detokenize: text and token ids, one into the other.
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/loaded_model.h"
#include "cli/text_input.h"

namespace winnow {
namespace {

// Written piece by piece: a JSON value of tens of millions of numbers would take gigabytes.
std::string tokens_line(std::span<const TokenId> ids) {
  std::string line = "{\"tokens\": [";
  for (size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) line += ", ";
    line += std::to_string(ids[i]);
  }
  return line + "]}\n";
}

}  // namespace

Result<ExitCode> cmd_tokenize(Arguments args, Console& console) {
  ModelFlags model;
  bool parse_special = false;
  FlagSet flags("tokenize", "Reads text on stdin and prints {\"tokens\": [ids]}.",
                "The bytes are taken as they are, UTF-8 or not. No BOS is added.\n");
  add_model_flag(flags, model);
  flags.toggle("--parse-special", parse_special, "recognise control tokens such as <|im_end|>");
  TRY(const bool go_on, parse_or_help(flags, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const LoadedTokenizer loaded, load_tokenizer(model));
  TRY(const std::string text, read_all(console.in, "standard input"));
  console.out.write(tokens_line(parse_special ? loaded.tokenizer->encode_with_special(text)
                                              : loaded.tokenizer->encode(text)));
  return ExitCode::kOk;
}

Result<ExitCode> cmd_detokenize(Arguments args, Console& console) {
  ModelFlags model;
  FlagSet flags("detokenize",
                "Reads {\"tokens\": [ids]} on stdin and writes the bytes they stand for.",
                "The inverse of 'winnow tokenize': nothing is added, not even a line end.\n");
  add_model_flag(flags, model);
  TRY(const bool go_on, parse_or_help(flags, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const LoadedTokenizer loaded, load_tokenizer(model));
  TRY(const std::string text, read_all(console.in, "standard input"));
  TRY(const std::vector<TokenId> ids,
      ids_from_json(text, "tokens", loaded.tokenizer->vocab_size(), "standard input"));
  console.out.write(loaded.tokenizer->decode(ids, true));
  return ExitCode::kOk;
}

}  // namespace winnow
