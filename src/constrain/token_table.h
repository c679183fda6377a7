// TokenTable: the tokens of a vocabulary by their bytes, arranged so that all that may follow a
// text are found in one walk. Made once for a model, then shared.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "constrain/grammar.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

// One bit for each token.
class TokenSet {
 public:
  explicit TokenSet(int32_t num_tokens) : words_((static_cast<size_t>(num_tokens) + 63) / 64) {}
  void insert(TokenId id) { words_[word(id)] |= bit(id); }
  bool contains(TokenId id) const { return (words_[word(id)] & bit(id)) != 0; }
  void insert_all(const TokenSet& other);
  bool empty() const;
  size_t num_bytes() const { return words_.size() * sizeof(uint64_t); }
  std::span<const uint64_t> words() const { return words_; }

 private:
  static size_t word(TokenId id) { return static_cast<size_t>(id) / 64; }
  static uint64_t bit(TokenId id) { return uint64_t{1} << (static_cast<size_t>(id) % 64); }
  std::vector<uint64_t> words_;
};

// A trie in the order of a walk that enters children before siblings.
struct TokenTrie {
  struct Node {
    uint8_t byte = 0;
    uint8_t depth = 0;         // 1 for first bytes
    uint32_t first_token = 0;  // of `tokens`; the next node's is the end
    uint32_t skip = 0;         // the node after all below this one
  };
  std::vector<Node> nodes;  // and one more that ends the last's tokens
  std::vector<TokenId> tokens;

  size_t num_nodes() const { return nodes.empty() ? 0 : nodes.size() - 1; }
};

class TokenTable {
 public:
  // `control_tokens` are the texts of control tokens that grammars name: the i-th is spelt
  // kControlByte, i. Those that are no control token of this vocabulary are left out. Other control
  // tokens, empty ones and those with a byte that no text has are in no trie.
  TokenTable(const Tokenizer& tokenizer, std::span<const std::string> control_tokens);

  int32_t num_tokens() const { return num_tokens_; }
  // Tokens of whole characters that stand in a JSON string as they are.
  const TokenTrie& plain() const { return plain_; }
  const TokenSet& plain_set() const { return plain_set_; }
  // No plain token has more characters.
  int32_t max_plain_characters() const { return max_plain_characters_; }
  // All others.
  const TokenTrie& others() const { return others_; }

  // The index of the control token with this text, if this vocabulary has it and grammars may name
  // it.
  std::optional<uint8_t> control_index(std::string_view text) const;

  // The bytes that a grammar sees; empty if none will ever let the token through.
  std::string_view spelling(TokenId id) const;

 private:
  int32_t num_tokens_ = 0;
  std::vector<std::string> controls_;  // by index; empty: not in this vocabulary
  std::string bytes_;
  std::vector<uint32_t> begins_ = {0};
  TokenTrie plain_, others_;
  TokenSet plain_set_;
  int32_t max_plain_characters_ = 0;
};

}  // namespace winnow
