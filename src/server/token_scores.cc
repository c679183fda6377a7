#include "server/token_scores.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "server/openai_types.h"

namespace winnow {
namespace {

// The scores may be more than one reader of them asked for.
std::span<const TokenLogprob> first_of(const std::vector<TokenLogprob>& top, int32_t count) {
  return std::span(top).first(std::min(top.size(), static_cast<size_t>(count)));
}

}  // namespace

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

void TokenScores::add(const ScoredToken& token, int32_t num_top) {
  add_text(token.token, true);
  logprobs_.push_back(shown_logprob(token.logprob));
  boost::json::object top;
  // Best first: of tokens that read alike the likelier one stays.
  for (const TokenLogprob& other : first_of(token.top, num_top)) {
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

void PromptLogprobs::add(std::span<const ScoredToken> tokens) {
  for (const ScoredToken& token : tokens) {
    list_.push_back(list_.empty() ? boost::json::value() : entry(token));
  }
}

boost::json::object PromptLogprobs::entry(const ScoredToken& token) const {
  boost::json::object entry;
  const auto add = [&](TokenId id, float logprob, int32_t rank) {
    // What is there already stays: the prompt's own token may be among the likeliest.
    entry.emplace(std::to_string(id),
                  boost::json::object{{"logprob", shown_logprob(logprob)},
                                      {"rank", rank},
                                      {"decoded_token", token_text(tokenizer_, id)}});
  };
  add(token.token, token.logprob, token.rank);
  int32_t rank = 0;
  for (const TokenLogprob& other : first_of(token.top, num_top_)) {
    add(other.token, other.logprob, ++rank);
  }
  return entry;
}

}  // namespace winnow
