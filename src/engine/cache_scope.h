// What K and V of a prompt depend on besides its tokens before them, as bytes to compare.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "engine/sequence.h"

namespace winnow {

// The rule of the mode's sparse rows and tokens; empty if it has none.
std::string mode_scope(const PromptMode& mode);
// Of a tenant's prompt in that mode. The sketches of a page with sparse rows after it depend on the
// first tokens of its prompt, so prompts that differ there share nothing.
std::string cache_scope(std::string_view tenant, const PromptMode& mode,
                        std::span<const TokenId> prompt);

}  // namespace winnow
