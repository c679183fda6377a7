#include "server/token_scores.h"

#include <utility>

#include "base/utf8.h"
#include "server/openai_types.h"

namespace winnow {

void TokenScores::add_text(TokenId token, bool shown) {
  tokens_.push_back(boost::json::value(token_text(tokenizer_, token)));
  offsets_.push_back(offset_);
  if (shown) offset_ += static_cast<int64_t>(num_characters(tokenizer_.piece(token)));
}

void TokenScores::add_first(TokenId token, bool shown) {
  add_text(token, shown);
  logprobs_.push_back(nullptr);
  tops_.push_back(nullptr);
}

void TokenScores::add(const ScoredToken& token) {
  add_text(token.token, true);
  logprobs_.push_back(shown_logprob(token.logprob));
  boost::json::object top;
  // Best first: of tokens that read alike the likelier one stays.
  for (const TokenLogprob& other : token.top) {
    top.emplace(token_text(tokenizer_, other.token), shown_logprob(other.logprob));
  }
  tops_.push_back(std::move(top));
}

boost::json::object TokenScores::take() {
  return {{"tokens", std::exchange(tokens_, {})},
          {"token_logprobs", std::exchange(logprobs_, {})},
          {"top_logprobs", std::exchange(tops_, {})},
          {"text_offset", std::exchange(offsets_, {})}};
}

}  // namespace winnow
