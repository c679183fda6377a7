#include "constrain/token_table.h"

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace winnow {
namespace {

// No piece of a vocabulary is longer; those that are would not be spelt by grammars anyway.
constexpr size_t kMaxSpelling = 255;

// Characters of `bytes`, if all are whole and stand in a JSON string as they are.
std::optional<int32_t> num_plain_characters(std::string_view bytes) {
  if (bytes.empty() || valid_utf8_prefix(bytes) != bytes.size()) return std::nullopt;
  int32_t count = 0;
  for (const char byte : bytes) {
    const auto code = static_cast<uint8_t>(byte);
    if (code < ' ' || code == '"' || code == '\\') return std::nullopt;
    count += (code & 0xC0) != 0x80;
  }
  return count;
}

// `ids` sorted by spelling.
TokenTrie make_trie(std::span<const TokenId> ids, const TokenTable& table) {
  TokenTrie trie;
  std::vector<uint32_t> path;  // nodes from the root to the last one
  std::string_view last;
  const auto leave = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) {
      trie.nodes[path.back()].skip = static_cast<uint32_t>(trie.nodes.size());
    }
  };
  for (const TokenId id : ids) {
    const std::string_view bytes = table.spelling(id);
    const auto differ = std::mismatch(bytes.begin(), bytes.end(), last.begin(), last.end()).first;
    leave(static_cast<size_t>(differ - bytes.begin()));
    while (path.size() < bytes.size()) {
      const auto byte = static_cast<uint8_t>(bytes[path.size()]);
      path.push_back(static_cast<uint32_t>(trie.nodes.size()));
      trie.nodes.push_back(
          {byte, static_cast<uint8_t>(path.size()), static_cast<uint32_t>(trie.tokens.size()), 0});
    }
    trie.tokens.push_back(id);
    last = bytes;
  }
  leave(0);
  trie.nodes.push_back({0, 0, static_cast<uint32_t>(trie.tokens.size()), 0});
  return trie;
}

}  // namespace

void TokenSet::insert_all(const TokenSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

bool TokenSet::empty() const {
  return std::all_of(words_.begin(), words_.end(), [](uint64_t word) { return word == 0; });
}

TokenTable::TokenTable(const Tokenizer& tokenizer, std::span<const std::string> control_tokens)
    : num_tokens_(tokenizer.vocab_size()),
      controls_(control_tokens.size()),
      plain_set_(tokenizer.vocab_size()) {
  std::vector<TokenId> plain, others;
  for (TokenId id = 0; id < num_tokens_; ++id) {
    const std::string_view piece = tokenizer.piece(id);
    const bool is_control = tokenizer.is_control(id);
    if (is_control) {
      const auto named = std::find(control_tokens.begin(), control_tokens.end(), piece);
      if (named != control_tokens.end()) {
        bytes_ += static_cast<char>(kControlByte);
        bytes_ += static_cast<char>(named - control_tokens.begin());
        controls_[static_cast<size_t>(named - control_tokens.begin())] = *named;
      }
    } else if (piece.find(static_cast<char>(kControlByte)) == std::string_view::npos &&
               piece.size() <= kMaxSpelling) {
      bytes_ += piece;
    }
    begins_.push_back(static_cast<uint32_t>(bytes_.size()));
    if (spelling(id).empty()) continue;
    const auto num_characters = is_control ? std::nullopt : num_plain_characters(piece);
    if (num_characters) {
      plain.push_back(id);
      plain_set_.insert(id);
      max_plain_characters_ = std::max(max_plain_characters_, *num_characters);
    } else {
      others.push_back(id);
    }
  }
  const auto by_spelling = [this](TokenId a, TokenId b) {
    return std::pair(spelling(a), a) < std::pair(spelling(b), b);
  };
  std::sort(plain.begin(), plain.end(), by_spelling);
  std::sort(others.begin(), others.end(), by_spelling);
  plain_ = make_trie(plain, *this);
  others_ = make_trie(others, *this);
}

std::optional<uint8_t> TokenTable::control_index(std::string_view text) const {
  const auto found = std::find(controls_.begin(), controls_.end(), text);
  if (text.empty() || found == controls_.end()) return std::nullopt;
  return static_cast<uint8_t>(found - controls_.begin());
}

std::string_view TokenTable::spelling(TokenId id) const {
  const auto idx = static_cast<size_t>(id);
  return std::string_view(bytes_).substr(begins_[idx], begins_[idx + 1] - begins_[idx]);
}

}  // namespace winnow
