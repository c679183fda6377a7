// TokenScores: the logprobs object of a text completion: four lists with one entry per token.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "engine/generation_service.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

class TokenScores {
 public:
  // `tokenizer` must outlive this. Offsets count the characters of the text before a token.
  explicit TokenScores(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  // The first token of a prompt has no score; `shown` says whether the text shows it.
  void add_first(TokenId token, bool shown);
  void add(const ScoredToken& token);
  // What was added since the last call.
  boost::json::object take();

 private:
  void add_text(TokenId token, bool shown);

  const Tokenizer& tokenizer_;
  int64_t offset_ = 0;
  boost::json::array tokens_, logprobs_, tops_, offsets_;
};

}  // namespace winnow
