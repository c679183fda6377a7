// CompletionRequest: the body of a text completion: one or several prompts, as text or as ids.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/generation_settings.h"

namespace winnow {

struct CompletionPrompt {
  std::vector<TokenId> ids;
  std::string text;        // what `echo` repeats
  bool bos_added = false;  // ids begin with a token that `text` does not show
};

struct CompletionRequest {
  GenerationSettings settings;
  std::vector<CompletionPrompt> prompts;
  bool echo = false;
};

// Choices of one request, over all its prompts, at most.
inline constexpr int64_t kMaxChoices = 128;

// Requires that check_fields passed. All prompts are checked before any is run. kInvalidArgument
// naming a field.
Result<CompletionRequest> read_completion_request(const boost::json::object& request,
                                                  const SettingsContext& context);
// The ids of a text that is no conversation: whoever wrote it may write control tokens. With
// `add_special` BOS comes first if the model wants it, once.
std::vector<TokenId> raw_prompt_ids(std::string_view text, bool add_special,
                                    const Tokenizer& tokenizer);
// The prompts alone, for endpoints that only render them.
Result<std::vector<CompletionPrompt>> read_prompts(const boost::json::object& request,
                                                   const Tokenizer& tokenizer);

}  // namespace winnow
