#include "tokenizer/special_matcher.h"

#include <algorithm>

namespace winnow {

uint32_t SpecialMatcher::child(uint32_t node, char byte) const {
  uint32_t next = nodes_[node].first_child;
  while (next != 0 && nodes_[next].byte != byte) next = nodes_[next].next_sibling;
  return next;
}

std::optional<TokenId> SpecialMatcher::add(std::string_view text, TokenId id, SpecialKind kind) {
  uint32_t node = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    uint32_t next = i == 0 ? first_node_[static_cast<uint8_t>(byte)] : child(node, byte);
    if (next == 0) {
      next = static_cast<uint32_t>(nodes_.size());
      Node added;
      added.byte = byte;
      if (i == 0) {
        first_node_[static_cast<uint8_t>(byte)] = next;
      } else {
        added.next_sibling = nodes_[node].first_child;
        nodes_[node].first_child = next;
      }
      nodes_.push_back(added);
    }
    node = next;
  }
  if (nodes_[node].has_piece) return nodes_[node].id;
  nodes_[node].has_piece = true;
  max_piece_bytes_ = std::max(max_piece_bytes_, text.size());
  nodes_[node].id = id;
  nodes_[node].kind = kind;
  return std::nullopt;
}

std::optional<TokenId> SpecialMatcher::find(std::string_view text) const {
  if (text.empty()) return std::nullopt;
  uint32_t node = first_node_[static_cast<uint8_t>(text[0])];
  for (size_t i = 1; node != 0 && i < text.size(); ++i) node = child(node, text[i]);
  if (node == 0 || !nodes_[node].has_piece) return std::nullopt;
  return nodes_[node].id;
}

std::optional<SpecialMatch> SpecialMatcher::match_at(std::string_view text, size_t pos,
                                                     size_t control_end) const {
  std::optional<SpecialMatch> longest;
  uint32_t node = first_node_[static_cast<uint8_t>(text[pos])];
  for (size_t end = pos + 1; node != 0; ++end) {
    const Node& reached = nodes_[node];
    if (reached.has_piece && (reached.kind == SpecialKind::kUserDefined || end <= control_end))
      longest = SpecialMatch{reached.id, reached.kind, pos, end};
    if (end == text.size()) break;
    node = child(node, text[end]);
  }
  return longest;
}

}  // namespace winnow
