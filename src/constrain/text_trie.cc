#include "constrain/text_trie.h"

#include "base/utf8.h"
#include "constrain/grammar.h"

namespace winnow {

bool TextTrie::is_full() const { return nodes_.size() > static_cast<size_t>(kMaxGrammarStates); }

size_t TextTrie::child(size_t node, uint32_t symbol) {
  const auto [found, is_new] = nodes_[node].children.try_emplace(symbol, nodes_.size());
  const size_t child = found->second;
  if (is_new) nodes_.emplace_back();
  return child;
}

void TextTrie::add_bytes(std::string_view text) {
  size_t node = 0;
  for (size_t i = 0; i < text.size() && !is_full(); ++i) {
    node = child(node, static_cast<uint8_t>(text[i]));
  }
  nodes_[node].is_text = true;
}

void TextTrie::add_characters(std::string_view text) {
  size_t node = 0;
  while (!text.empty() && !is_full()) {
    const size_t num_bytes = first_utf8_unit(text).num_bytes;
    node = child(node, code_point_of(text.substr(0, num_bytes)));
    text.remove_prefix(num_bytes);
  }
  nodes_[node].is_text = true;
}

}  // namespace winnow
