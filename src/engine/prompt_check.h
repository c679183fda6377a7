// What every prompt must satisfy before it is run.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/result.h"
#include "model/model.h"

namespace winnow {

struct PromptSize {
  int64_t tokens = 0;
  bool exact = true;  // false: at least so many
};

// A prompt of that size has no room in a context of `context_tokens`. Clients look for the words
// "maximum context length is".
Error context_exceeded(const Model& model, int64_t context_tokens, const PromptSize& prompt);

// kInvalidArgument for an empty prompt or an id outside the vocabulary, kContextExceeded for one
// longer than `max_tokens`, which is what a context of `context_tokens` leaves for it. Also checks
// that the model file is still what was mapped: touching a page of a file that has shrunk would end
// the process.
Status check_prompt(const Model& model, int64_t context_tokens, int64_t max_tokens,
                    std::span<const TokenId> prompt);

}  // namespace winnow
