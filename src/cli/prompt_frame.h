// PromptFrame: what stands around the one message of a prompt, so that the prompt can be put
// together, and cut, in parts.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/rendered_text.h"
#include "tokenizer/tokenizer.h"
#include "weights/metadata.h"

namespace winnow {

struct PromptFrame {
  RenderedText before;
  RenderedText after;  // ends where the answer begins
};

// By the model's chat template. A base model has none: nothing stands before, a line end after.
// kCorruptFile for a template that cannot be read; kUnsupported for one that does not show the
// message once.
Result<PromptFrame> prompt_frame(const Metadata& metadata, const Tokenizer& tokenizer);

// BOS if the model wants it, the frame's beginning, and the message as far as `message`.
std::vector<TokenId> encode_open_prompt(const Tokenizer& tokenizer, const PromptFrame& frame,
                                        std::string_view message);
// The rest of a message, the frame's end, and the first words of the answer.
std::vector<TokenId> encode_prompt_end(const Tokenizer& tokenizer, const PromptFrame& frame,
                                       std::string_view rest, std::string_view answer_begin);
// A whole message and the first words of the answer, encoded as one text.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const PromptFrame& frame,
                                   std::string_view message, std::string_view answer_begin);

}  // namespace winnow
