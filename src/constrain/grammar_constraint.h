// GrammarConstraint: the tokens that keep an answer within a grammar.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "constrain/grammar.h"
#include "constrain/grammar_matcher.h"
#include "constrain/token_table.h"
#include "engine/generation_service.h"

namespace winnow {

// End tokens may come where the grammar's text may end, and nothing else once it must. Therefore
// a request with a constraint must not also hold end tokens back (min_new_tokens) or lack them
// (end_tokens).
//
// A mask is made with a bounded amount of work. If that is not enough, which takes a pattern made
// for the purpose, some tokens that might have come are missing from it; single bytes are not.
class GrammarConstraint final : public TokenConstraint {
 public:
  // GrammarMatcher::work() that one mask may cost, but for the last step of it; some 40 ms on AVX2.
  // Schemas in use cost up to 10,000.
  static constexpr int64_t kMaxMaskWork = 250'000;

  GrammarConstraint(std::shared_ptr<const Grammar> grammar,
                    std::shared_ptr<const TokenTable> tokens, std::vector<TokenId> end_tokens);

  // Logits past the vocabulary are of no token.
  void mask(std::span<float> logits) override;
  void accept(TokenId token) override;

  // Whether the text so far is complete; more may be allowed to follow.
  bool may_end() const;
  // Of all masks and tokens so far.
  int64_t work() const { return matcher_.work(); }

 private:
  const TokenSet& allowed();
  TokenSet make_allowed();
  void add_single_bytes(TokenSet& allowed);
  // False if the work was not finished.
  bool add_walk(const TokenTrie& trie, int64_t max_work, TokenSet& allowed);
  void bound_memory();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const TokenTable> tokens_;
  std::vector<TokenId> end_tokens_;
  GrammarMatcher matcher_;
  ConfigId config_;
  bool ended_ = false;
  std::unordered_map<ConfigId, TokenSet> cache_;
  size_t cache_bytes_ = 0;
  std::vector<ConfigId> path_;  // of add_walk, kept for its memory
};

}  // namespace winnow
