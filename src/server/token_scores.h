// Scores as answers show them: the logprobs object of a text completion, and those of a prompt.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <span>

#include "engine/generation_service.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

// Four lists with one entry per token.
class TokenScores {
 public:
  // `tokenizer` must outlive this. Offsets count the characters of the text before a token.
  explicit TokenScores(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The first token of a prompt has no score; `shown` says whether the text shows it.
  void add_first(TokenId token, bool shown);
  // With its `num_top` likeliest alternatives at most.
  void add(const ScoredToken& token, int32_t num_top);
  // What was added since the last call.
  boost::json::object take();

 private:
  void add_text(TokenId token, bool shown);

  const Tokenizer& tokenizer_;
  int64_t offset_ = 0;
  boost::json::array tokens_, logprobs_, tops_, offsets_;
};

// prompt_logprobs as vLLM writes them: null for the first token, for each other one an object of
// token ids, the prompt's own first, then the likeliest.
class PromptLogprobs {
 public:
  // `tokenizer` must outlive this. `num_top` alternatives at most are shown.
  PromptLogprobs(const Tokenizer& tokenizer, int32_t num_top)
      : tokenizer_(tokenizer), num_top_(num_top) {}

  // The next tokens of the prompt.
  void add(std::span<const ScoredToken> tokens);
  // All that was added.
  boost::json::array take() { return std::move(list_); }

 private:
  boost::json::object entry(const ScoredToken& token) const;

  const Tokenizer& tokenizer_;
  int32_t num_top_;
  boost::json::array list_;
};

}  // namespace winnow
