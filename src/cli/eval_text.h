// The text that an eval verb reads, as token ids.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "cli/console.h"
#include "cli/loaded_model.h"

namespace winnow {

struct EvalTextFlags {
  std::optional<std::string> file;
  std::optional<std::string> ids_file;
  int64_t max_tokens = std::numeric_limits<int64_t>::max();
};

void add_eval_text_flags(FlagSet& set, EvalTextFlags& flags);

// The text of -f or the file of --ids, of which there must be one.
Result<std::string> read_eval_text(const EvalTextFlags& flags, Console& console);
// Its token ids, the first --tokens of them. kInvalidArgument if fewer than `least` remain.
Result<std::vector<TokenId>> encode_eval_text(const EvalTextFlags& flags, const std::string& text,
                                              const LoadedModel& loaded, size_t least);

}  // namespace winnow
