#include "constrain/pattern.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/escape.h"
#include "base/utf8.h"

namespace winnow {
namespace {

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  enum class Kind { kSet, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kSequence;
  CharacterSet set = {};
  std::vector<NodePtr> parts = {};
  int32_t min = 0, max = 0;
  // Of the alternatives of the whole pattern.
  bool from_start = false, to_end = false;
};

const CharacterSet kDigits = {{'0', '9'}};
const CharacterSet kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CharacterSet kAsciiBlanks = {{'\t', '\r'}, {' ', ' '}};
const CharacterSet kBlanks = {{'\t', '\r'},     {0x1C, ' '},      {0x85, 0x85},
                              {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                              {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                              {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
const CharacterSet kLineEnds = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};

// The set of a class escape (\d, \W, ...). Dialects differ in what a blank is: \s is what all of
// them take for one and \S what none does, or the other way round where the set is then negated.
std::optional<CharacterSet> class_escape(uint32_t letter, bool negated) {
  switch (letter) {
    case 'd':
      return kDigits;
    case 'D':
      return complement(kDigits);
    case 'w':
      return kWord;
    case 'W':
      return complement(kWord);
    case 's':
      return negated ? kBlanks : kAsciiBlanks;
    case 'S':
      return complement(negated ? kAsciiBlanks : kBlanks);
    default:
      return std::nullopt;
  }
}

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : pattern_(pattern) {}
  Result<NodePtr> parse();

 private:
  Error refuse(const char* what) const {
    return fail(ErrorCode::kUnsupported, "pattern '%s': %s at byte %zu is not supported",
                escaped(pattern_, 120).c_str(), what, pos_);
  }
  Error broken(const char* expected) const {
    return fail(ErrorCode::kInvalidArgument, "pattern '%s': expected %s at byte %zu",
                escaped(pattern_, 120).c_str(), expected, pos_);
  }
  bool at_end() const { return pos_ >= pattern_.size(); }
  bool next_is(std::string_view text) const { return pattern_.substr(pos_).starts_with(text); }
  bool take(std::string_view text) {
    if (!next_is(text)) return false;
    pos_ += text.size();
    return true;
  }
  uint32_t take_character();
  bool ends_alternative() const { return at_end() || next_is("|") || next_is(")"); }

  Result<NodePtr> choice(int depth);
  Result<NodePtr> sequence(int depth);
  Result<NodePtr> atom(int depth);
  Result<NodePtr> group(int depth);
  Result<CharacterSet> bracket();
  Result<CharacterSet> bracket_item(bool negated);
  // What follows a backslash, which was taken.
  Result<CharacterSet> escape(bool in_bracket, bool negated);
  Result<uint32_t> hex(size_t num_digits);
  Result<NodePtr> quantified(NodePtr node);
  Result<int32_t> repeat_count();

  std::string_view pattern_;
  size_t pos_ = 0;
};

NodePtr set_node(CharacterSet set) {
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kSet;
  node->set = std::move(set);
  return node;
}

uint32_t PatternParser::take_character() {
  const Utf8Unit unit = first_utf8_unit(pattern_.substr(pos_));
  const uint32_t code = code_point_of(pattern_.substr(pos_, unit.num_bytes));
  pos_ += unit.num_bytes;
  return code;
}

Result<NodePtr> PatternParser::parse() {
  TRY(NodePtr whole, choice(0));
  if (!at_end()) return broken("no ')' without '('");
  return whole;
}

Result<NodePtr> PatternParser::choice(int depth) {
  if (depth > kMaxPatternDepth) return refuse("a group this deep");
  auto node = std::make_unique<Node>();
  node->kind = Node::Kind::kChoice;
  do {
    TRY(NodePtr part, sequence(depth));
    node->parts.push_back(std::move(part));
  } while (take("|"));
  return node;
}

Result<NodePtr> PatternParser::sequence(int depth) {
  auto node = std::make_unique<Node>();
  if (depth == 0 && take("^")) node->from_start = true;
  while (!ends_alternative()) {
    if (depth == 0 && next_is("$")) {
      take("$");
      if (!ends_alternative()) return refuse("'$' before the end");
      node->to_end = true;
      break;
    }
    TRY(NodePtr part, atom(depth));
    TRY(part, quantified(std::move(part)));
    node->parts.push_back(std::move(part));
  }
  return node;
}

Result<NodePtr> PatternParser::atom(int depth) {
  if (next_is("^") || next_is("$")) return refuse("'^' or '$' inside");
  if (next_is("*") || next_is("+") || next_is("?")) return broken("something to repeat");
  if (take("(")) return group(depth);
  if (take("[")) {
    TRY(CharacterSet set, bracket());
    return set_node(std::move(set));
  }
  if (take(".")) return set_node(complement(kLineEnds));
  if (take("\\")) {
    TRY(CharacterSet set, escape(false, false));
    return set_node(std::move(set));
  }
  const uint32_t code = take_character();
  return set_node({{code, code}});
}

Result<NodePtr> PatternParser::group(int depth) {
  if (take("?")) {
    if (!take(":")) return refuse("a group that starts with '(?'");
  }
  TRY(NodePtr inside, choice(depth + 1));
  if (!take(")")) return broken("')'");
  return inside;
}

Result<uint32_t> PatternParser::hex(size_t num_digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < num_digits; ++i, ++pos_) {
    const char byte = at_end() ? '\0' : pattern_[pos_];
    const bool is_digit = byte >= '0' && byte <= '9';
    const char lower = static_cast<char>(byte | 0x20);
    if (!is_digit && !(lower >= 'a' && lower <= 'f')) return broken("a hexadecimal digit");
    value = value * 16 + static_cast<uint32_t>(is_digit ? byte - '0' : lower - 'a' + 10);
  }
  return value;
}

Result<CharacterSet> PatternParser::escape(bool in_bracket, bool negated) {
  if (at_end()) return broken("a character after '\\'");
  const size_t begin = pos_;
  const uint32_t letter = take_character();
  if (auto set = class_escape(letter, negated)) return *std::move(set);
  uint32_t code = letter;
  switch (letter) {
    case 'n':
      code = '\n';
      break;
    case 'r':
      code = '\r';
      break;
    case 't':
      code = '\t';
      break;
    case 'f':
      code = '\f';
      break;
    case 'v':
      code = '\v';
      break;
    case 'x': {
      TRY(code, hex(2));
      break;
    }
    case 'u': {
      TRY(code, hex(4));
      break;
    }
    default: {
      const bool is_letter_or_digit = letter < 0x80 && std::isalnum(static_cast<int>(letter)) != 0;
      if (letter == 'b' && in_bracket) {
        code = '\b';
      } else if (is_letter_or_digit) {
        pos_ = begin;
        return refuse("this escape");
      }
    }
  }
  return CharacterSet{{code, code}};
}

Result<CharacterSet> PatternParser::bracket_item(bool negated) {
  if (take("\\")) return escape(true, negated);
  const uint32_t code = take_character();
  return CharacterSet{{code, code}};
}

Result<CharacterSet> PatternParser::bracket() {
  const bool negated = take("^");
  std::vector<CodePointRange> ranges;
  while (!take("]")) {
    if (at_end()) return broken("']'");
    TRY(CharacterSet item, bracket_item(negated));
    const bool is_character = item.size() == 1 && item[0].first == item[0].last;
    if (is_character && next_is("-") && !next_is("-]")) {
      take("-");
      if (at_end()) return broken("']'");
      TRY(const CharacterSet end, bracket_item(negated));
      const bool ordered =
          end.size() == 1 && end[0].first == end[0].last && item[0].first <= end[0].last;
      if (!ordered) return broken("a range of characters in order before this");
      item[0].last = end[0].last;
    }
    ranges.insert(ranges.end(), item.begin(), item.end());
  }
  CharacterSet set = normalized(std::move(ranges));
  return negated ? complement(set) : set;
}

Result<int32_t> PatternParser::repeat_count() {
  if (at_end() || pattern_[pos_] < '0' || pattern_[pos_] > '9') return broken("a number");
  int32_t count = 0;
  for (; !at_end() && pattern_[pos_] >= '0' && pattern_[pos_] <= '9'; ++pos_) {
    count = count * 10 + (pattern_[pos_] - '0');
    if (count > kMaxPatternRepeat) return refuse("a repetition of more than 1000");
  }
  return count;
}

Result<NodePtr> PatternParser::quantified(NodePtr node) {
  int32_t min = 0, max = kEndless;
  if (take("*")) {
  } else if (take("+")) {
    min = 1;
  } else if (take("?")) {
    max = 1;
  } else if (take("{")) {
    TRY(min, repeat_count());
    max = min;
    if (take(",")) {
      max = kEndless;
      if (!next_is("}")) {
        TRY(max, repeat_count());
      }
    }
    if (!take("}")) return broken("'}'");
    if (min > max) return broken("a repetition whose limits are in order before this");
  } else {
    return node;
  }
  take("?");  // how much is taken first does not change what is matched
  if (next_is("*") || next_is("+") || next_is("?") || next_is("{"))
    return refuse("a second repetition");
  auto repeat = std::make_unique<Node>();
  repeat->kind = Node::Kind::kRepeat;
  repeat->min = min;
  repeat->max = max;
  repeat->parts.push_back(std::move(node));
  return repeat;
}

class Builder {
 public:
  Builder(GrammarBuilder& builder, JsonRules& rules) : builder_(builder), rules_(rules) {}
  // The alternatives of the whole pattern, then `next`.
  StateId whole(const Node& choice, StateId next);

 private:
  StateId states(const Node& node, StateId next);
  StateId sequence(const Node& node, StateId next);
  StateId repeat(const Node& node, StateId next);

  GrammarBuilder& builder_;
  JsonRules& rules_;
};

StateId Builder::whole(const Node& choice, StateId next) {
  const auto anything = [&](StateId after) {
    return builder_.repeat_plain(rules_.string_character(), 0, kEndless, after);
  };
  std::vector<StateId> targets;
  for (const NodePtr& part : choice.parts) {
    const StateId start = sequence(*part, part->to_end ? next : anything(next));
    targets.push_back(part->from_start ? start : anything(start));
  }
  return builder_.split(std::move(targets));
}

StateId Builder::sequence(const Node& node, StateId next) {
  for (size_t i = node.parts.size(); i-- > 0;) next = states(*node.parts[i], next);
  return next;
}

StateId Builder::states(const Node& node, StateId next) {
  if (builder_.is_full()) return next;
  switch (node.kind) {
    case Node::Kind::kSet:
      return rules_.character_of(node.set, next);
    case Node::Kind::kSequence:
      return sequence(node, next);
    case Node::Kind::kRepeat:
      return repeat(node, next);
    case Node::Kind::kChoice: {
      std::vector<StateId> targets;
      for (const NodePtr& part : node.parts) targets.push_back(states(*part, next));
      return builder_.split(std::move(targets));
    }
  }
  return next;
}

StateId Builder::repeat(const Node& node, StateId next) {
  const auto inside = [&](StateId end) { return states(*node.parts.front(), end); };
  return builder_.repeat(inside, node.min, node.max, next);
}

}  // namespace

Result<StateId> pattern_states(GrammarBuilder& builder, JsonRules& rules, std::string_view pattern,
                               StateId next) {
  if (pattern.size() > kMaxPatternBytes) {
    return fail(ErrorCode::kInvalidArgument, "pattern: expected at most %zu bytes, found %zu",
                kMaxPatternBytes, pattern.size());
  }
  if (valid_utf8_prefix(pattern) != pattern.size()) {
    return fail(ErrorCode::kInvalidArgument, "pattern: expected UTF-8");
  }
  TRY(const NodePtr whole, PatternParser(pattern).parse());
  return Builder(builder, rules).whole(*whole, next);
}

}  // namespace winnow
