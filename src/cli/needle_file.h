// Needle prompts that were made elsewhere, as JSON files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/needle_prompt.h"

namespace winnow {

// {"ids": [...], "asked_after": [{"question_ids": [...], "answer_ids": [...]}, ...],
//  "recalled_inside": [{"position": N, "answer_ids": [...]}, ...]}. kInvalidArgument naming `name`
// for what is missing, out of range, or asks for tokens that do not stand in the text before it.
Result<NeedlePrompt> needle_prompt_from_json(std::string_view text, int32_t vocab_size,
                                             const std::string& name);

}  // namespace winnow
