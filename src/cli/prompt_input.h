// The prompt of `winnow run`: a text, a file, both, or standard input.
#pragma once

#include <optional>
#include <string>

#include "cli/console.h"
#include "cli/flags.h"

namespace winnow {

struct PromptFlags {
  std::optional<std::string> text;
  std::optional<std::string> file;
  bool raw = false;
};

void add_prompt_flags(FlagSet& flags, PromptFlags& target);

// A file comes first and the text after it, an empty line between: document, then question. For a
// raw prompt the bytes are taken as they are and joined without the empty line; otherwise they are
// decoded, and replaced bytes are noted.
Result<std::string> read_prompt(const PromptFlags& flags, Console& console);

}  // namespace winnow
