// TextTrie: texts by what they begin with alike, as sequences of bytes or of characters.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace winnow {

class TextTrie {
 public:
  struct Node {
    std::map<uint32_t, size_t> children;  // by byte or code point
    bool is_text = false;                 // one ends here
  };

  void add_bytes(std::string_view text);
  // Requires UTF-8.
  void add_characters(std::string_view text);

  // The root first; children come after their parents. With more nodes than a grammar may have
  // states nothing is added: what is made of them is refused for its size.
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  // The node that `node` leads to.
  size_t child(size_t node, uint32_t symbol);
  bool is_full() const;

  std::vector<Node> nodes_ = std::vector<Node>(1);
};

}  // namespace winnow
