#include "constrain/text_grammar.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/check.h"
#include "constrain/text_trie.h"

namespace winnow {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

// The last code points that UTF-8 writes with 1, 2, 3 and 4 bytes.
constexpr std::array<uint32_t, 4> kLastOfLength = {0x7F, 0x7FF, 0xFFFF, kLastCodePoint};

size_t encode(uint32_t code_point, std::array<uint8_t, 4>& out) {
  size_t size = 1;
  while (code_point > kLastOfLength[size - 1]) ++size;
  if (size == 1) {
    out[0] = static_cast<uint8_t>(code_point);
    return 1;
  }
  for (size_t i = size - 1; i > 0; --i) {
    out[i] = static_cast<uint8_t>(0x80 | (code_point & 0x3F));
    code_point >>= 6;
  }
  out[0] = static_cast<uint8_t>((0xF00 >> size) | code_point);
  return size;
}

// Collects the edges of one character's first byte; the bytes after it become states.
class CharacterEdges {
 public:
  CharacterEdges(GrammarBuilder& builder, StateId next) : builder_(builder), tails_{next} {}

  // Requires that all of [first, last] have the same length in UTF-8.
  void add(uint32_t first, uint32_t last);
  std::vector<ByteEdge> take() && { return std::move(edges_); }

 private:
  // Any continuation bytes, `count` of them.
  StateId free_tail(size_t count);
  void add_bytes(const uint8_t* low, const uint8_t* high, size_t size,
                 std::vector<ByteEdge>& edges);

  GrammarBuilder& builder_;
  std::vector<StateId> tails_;
  std::vector<ByteEdge> edges_;
};

StateId CharacterEdges::free_tail(size_t count) {
  while (tails_.size() <= count) tails_.push_back(builder_.bytes(0x80, 0xBF, tails_.back()));
  return tails_[count];
}

// Edges for the byte strings from `low` to `high`, in the order of bytes; at most four levels deep.
void CharacterEdges::add_bytes(const uint8_t* low, const uint8_t* high, size_t size,
                               std::vector<ByteEdge>& edges) {
  if (size == 1) {
    edges.push_back({*low, *high, tails_.front()});
    return;
  }
  constexpr std::array<uint8_t, 3> kLowest = {0x80, 0x80, 0x80}, kHighest = {0xBF, 0xBF, 0xBF};
  const size_t rest = size - 1;
  const auto below = [&](const uint8_t* rest_low, const uint8_t* rest_high) {
    std::vector<ByteEdge> inner;
    add_bytes(rest_low, rest_high, rest, inner);
    return builder_.byte_edges(std::move(inner));
  };
  if (*low == *high) {
    edges.push_back({*low, *low, below(low + 1, high + 1)});
    return;
  }
  int first = *low, last = *high;
  if (!std::equal(low + 1, low + size, kLowest.begin())) {
    edges.push_back({*low, *low, below(low + 1, kHighest.data())});
    ++first;
  }
  if (!std::equal(high + 1, high + size, kHighest.begin())) {
    edges.push_back({*high, *high, below(kLowest.data(), high + 1)});
    --last;
  }
  if (first <= last) {
    edges.push_back({static_cast<uint8_t>(first), static_cast<uint8_t>(last), free_tail(rest)});
  }
}

void CharacterEdges::add(uint32_t first, uint32_t last) {
  std::array<uint8_t, 4> low{}, high{};
  const size_t size = encode(first, low);
  CHECK(encode(last, high) == size);
  add_bytes(low.data(), high.data(), size, edges_);
}

}  // namespace

CharacterSet normalized(std::vector<CodePointRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  std::vector<CodePointRange> merged;
  for (const CodePointRange& range : ranges) {
    if (range.first > range.last) continue;
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  CharacterSet set;
  for (const CodePointRange& range : merged) {
    if (range.last < kFirstSurrogate || range.first > kLastSurrogate) {
      set.push_back(range);
      continue;
    }
    if (range.first < kFirstSurrogate) set.push_back({range.first, kFirstSurrogate - 1});
    if (range.last > kLastSurrogate) set.push_back({kLastSurrogate + 1, range.last});
  }
  return set;
}

CharacterSet complement(const CharacterSet& set) {
  std::vector<CodePointRange> rest;
  uint32_t next = 0;
  for (const CodePointRange& range : set) {
    if (range.first > next) rest.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) rest.push_back({next, kLastCodePoint});
  return normalized(std::move(rest));
}

CharacterSet intersection(const CharacterSet& a, const CharacterSet& b) {
  CharacterSet common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint32_t first = std::max(a[i].first, b[j].first);
    const uint32_t last = std::min(a[i].last, b[j].last);
    if (first <= last) common.push_back({first, last});
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return common;
}

StateId any_of(GrammarBuilder& builder, const CharacterSet& set, StateId next) {
  CharacterEdges edges(builder, next);
  for (const CodePointRange& range : set) {
    uint32_t first = range.first;
    for (const uint32_t last_of_length : kLastOfLength) {
      if (first > last_of_length) continue;
      edges.add(first, std::min(range.last, last_of_length));
      if (range.last <= last_of_length) break;
      first = last_of_length + 1;
    }
  }
  return builder.byte_edges(std::move(edges).take());
}

// One state for each length of the part of `mark` that the text ends with.
StateId text_until(GrammarBuilder& builder, std::string_view mark, StateId next) {
  CHECK(!mark.empty());
  std::vector<StateId> states(mark.size());
  for (StateId& state : states) state = builder.open_split();
  // The part of `mark` that mark[0, matched) followed by `byte` ends with.
  const auto matched_after = [&](size_t matched, char byte) {
    const std::string text = std::string(mark.substr(0, matched)) + byte;
    size_t size = std::min(text.size(), mark.size());
    while (!text.ends_with(mark.substr(0, size))) --size;
    return size;
  };
  for (size_t matched = 0; matched < mark.size(); ++matched) {
    std::vector<StateId> targets;
    std::vector<CodePointRange> special;
    for (const char byte : std::string_view(mark)) {
      const auto code = static_cast<uint8_t>(byte);
      CHECK(code < 0x80);
      const bool is_known = std::any_of(special.begin(), special.end(),
                                        [&](const auto& range) { return range.first == code; });
      if (is_known) continue;
      special.push_back({code, code});
      const size_t size = matched_after(matched, byte);
      targets.push_back(builder.bytes(code, code, size == mark.size() ? next : states[size]));
    }
    const CharacterSet others = complement(normalized(std::move(special)));
    targets.push_back(any_of(builder, others, states[0]));
    builder.define_split(states[matched], std::move(targets));
  }
  return states[0];
}

StateId one_of(GrammarBuilder& builder, const std::set<std::string>& texts, StateId next) {
  TextTrie trie;
  for (const std::string& text : texts) trie.add_bytes(text);
  const std::vector<TextTrie::Node>& nodes = trie.nodes();
  std::vector<StateId> states(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    std::vector<ByteEdge> edges;
    for (const auto& [symbol, child] : nodes[i].children) {
      const auto byte = static_cast<uint8_t>(symbol);
      edges.push_back({byte, byte, states[child]});
    }
    states[i] = edges.empty() ? next : builder.byte_edges(std::move(edges));
    if (nodes[i].is_text) states[i] = builder.optional(states[i], next);
  }
  return states[0];
}

}  // namespace winnow
