// SpecialMatcher: finds pieces that are taken whole out of a text before any merging: user-defined
// pieces anywhere, control pieces only where the caller allows them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace winnow {

enum class SpecialKind : uint8_t { kUserDefined, kControl };

struct SpecialMatch {
  TokenId id = 0;
  SpecialKind kind = SpecialKind::kUserDefined;
  size_t begin = 0, end = 0;
};

class SpecialMatcher {
 public:
  // The token that already has this text, if there is one; then nothing is added. Requires a
  // non-empty text.
  std::optional<TokenId> add(std::string_view text, TokenId id, SpecialKind kind);
  std::optional<TokenId> find(std::string_view text) const;
  // Of the longest piece; 0 without pieces.
  size_t max_piece_bytes() const { return max_piece_bytes_; }

  // The longest piece at `pos`; control pieces count only if they end at or before `control_end`.
  std::optional<SpecialMatch> match_at(std::string_view text, size_t pos, size_t control_end) const;
  bool may_begin(char byte) const { return first_node_[static_cast<uint8_t>(byte)] != 0; }

 private:
  // A trie whose children are chained; node 0 is no node.
  struct Node {
    char byte = 0;
    bool has_piece = false;
    SpecialKind kind = SpecialKind::kUserDefined;
    TokenId id = 0;
    uint32_t first_child = 0, next_sibling = 0;
  };
  uint32_t child(uint32_t node, char byte) const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::array<uint32_t, 256> first_node_{};
  size_t max_piece_bytes_ = 0;
};

}  // namespace winnow
