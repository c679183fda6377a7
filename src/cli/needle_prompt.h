// NeedlePrompt: a long text with numbers planted in it and places that ask for them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "cli/prompt_frame.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

// A number that the text names once; the question about it follows the whole text.
struct AskedNeedle {
  int64_t needle = 0;             // position of the number's first token in the prompt's ids
  std::vector<TokenId> question;  // follows the prompt's ids; ends where the number begins
  std::vector<TokenId> answer;    // the number's tokens
};

// A number that the text names twice: the second time far from the first.
struct RecalledNeedle {
  int64_t needle = 0;    // position of the number's first token where it is named first
  int64_t position = 0;  // and where it is named again
  std::vector<TokenId> answer;
};

struct NeedlePrompt {
  std::vector<TokenId> ids;
  std::vector<AskedNeedle> asked_after;
  std::vector<RecalledNeedle> recalled_inside;
};

inline constexpr int64_t kMaxNeedles = 100;

struct NeedlePromptShape {
  int64_t num_tokens = 0;   // of the prompt without a question
  int64_t num_needles = 0;  // of each kind, 1 to kMaxNeedles
  uint64_t seed = 0;        // chooses names, numbers and the order of the second mentions
};

// Numbers that are asked for stand at even distances in the whole text; those that are recalled
// inside stand in its first half and come again, in another order, between .55 and .9 of it. The
// text is `filler`, which must not be empty, cut at exactly num_tokens. kInvalidArgument if that
// leaves no room for the needles; kUnsupported for a tokenizer that cannot spell them.
Result<NeedlePrompt> make_needle_prompt(const Tokenizer& tokenizer, const PromptFrame& frame,
                                        std::string_view filler, const NeedlePromptShape& shape);

// How many of `found` equal the token of `answer` at the same place.
int64_t num_right(std::span<const TokenId> answer, std::span<const TokenId> found);

}  // namespace winnow
