#include "constrain/json_rules.h"

#include <algorithm>
#include <cstdio>

#include "base/utf8.h"
#include "constrain/text_trie.h"

namespace winnow {
namespace {

constexpr uint32_t kQuote = '"', kBackslash = '\\', kFirstPlain = ' ';

// The short escape of a code point, 0 if it has none.
char short_escape(uint32_t code_point) {
  switch (code_point) {
    case kQuote:
      return '"';
    case kBackslash:
      return '\\';
    case '\b':
      return 'b';
    case '\f':
      return 'f';
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

std::string escape_of(uint32_t code_point) {
  const char letter = short_escape(code_point);
  if (letter != 0) return {'\\', letter};
  char text[8];
  std::snprintf(text, sizeof text, "\\u%04x", code_point);
  return text;
}

}  // namespace

const CharacterSet& plain_characters() {
  static const CharacterSet set =
      complement({{0, kFirstPlain - 1}, {kQuote, kQuote}, {kBackslash, kBackslash}});
  return set;
}

std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    const auto code = static_cast<uint8_t>(byte);
    if (code < kFirstPlain || code == kQuote || code == kBackslash) {
      out += escape_of(code);
    } else {
      out += byte;
    }
  }
  return out;
}

RuleId JsonRules::indent_blank() {
  if (!indent_blank_) {
    indent_blank_ = builder_.declare_rule();
    builder_.define_rule(*indent_blank_, builder_.literal(" ", builder_.done()));
  }
  return *indent_blank_;
}

StateId JsonRules::line_blank(StateId next) {
  const StateId indent = builder_.repeat(indent_blank(), 0, kMaxIndent, next);
  return builder_.split({next, builder_.literal(" ", next), builder_.literal("\n", indent)});
}

StateId JsonRules::colon(StateId next) {
  return builder_.literal(":", builder_.split({next, builder_.literal(" ", next)}));
}

StateId JsonRules::digits(int min, int max, StateId next) {
  for (int i = max; i > 0; --i) {
    const StateId digit = builder_.bytes('0', '9', next);
    next = i > min ? builder_.optional(digit, next) : digit;
  }
  return next;
}

// A backslash and what may follow. Surrogates come in pairs only.
StateId JsonRules::escape_sequence(StateId next) {
  const auto hex = [&](StateId after) {
    return builder_.byte_edges({{'0', '9', after}, {'A', 'F', after}, {'a', 'f', after}});
  };
  const StateId hex2 = hex(hex(next));
  const StateId low_surrogate = builder_.literal(
      "\\u",
      builder_.byte_edges({{'D', 'D', builder_.byte_edges({{'C', 'F', hex2}, {'c', 'f', hex2}})},
                           {'d', 'd', builder_.byte_edges({{'C', 'F', hex2}, {'c', 'f', hex2}})}}));
  const StateId high_surrogate_end = hex(hex(low_surrogate));
  const StateId after_d = builder_.byte_edges({{'0', '7', hex2},
                                               {'8', '9', high_surrogate_end},
                                               {'A', 'B', high_surrogate_end},
                                               {'a', 'b', high_surrogate_end}});
  const StateId hex3 = hex(hex2);
  const StateId unit = builder_.byte_edges({{'0', '9', hex3},
                                            {'A', 'C', hex3},
                                            {'D', 'D', after_d},
                                            {'E', 'F', hex3},
                                            {'a', 'c', hex3},
                                            {'d', 'd', after_d},
                                            {'e', 'f', hex3}});
  std::vector<ByteEdge> edges = {{'u', 'u', unit}};
  for (const char letter : std::string_view("\"\\/bfnrt")) {
    const auto byte = static_cast<uint8_t>(letter);
    edges.push_back({byte, byte, next});
  }
  return builder_.literal("\\", builder_.byte_edges(std::move(edges)));
}

RuleId JsonRules::string_character() {
  if (!string_character_) {
    string_character_ = builder_.declare_rule();
    const StateId done = builder_.done();
    builder_.define_rule(
        *string_character_,
        builder_.split({any_of(builder_, plain_characters(), done), escape_sequence(done)}));
  }
  return *string_character_;
}

RuleId JsonRules::plain_character() {
  if (!plain_character_) {
    plain_character_ = builder_.declare_rule();
    builder_.define_rule(*plain_character_, any_of(builder_, plain_characters(), builder_.done()));
  }
  return *plain_character_;
}

StateId JsonRules::string(int32_t min, int32_t max, StateId next) {
  const StateId close = builder_.literal("\"", next);
  return builder_.literal("\"", builder_.repeat_plain(string_character(), min, max, close));
}

StateId JsonRules::character_of(const CharacterSet& set, StateId next) {
  std::vector<StateId> targets = {any_of(builder_, intersection(set, plain_characters()), next)};
  const CharacterSet escaped = intersection(set, complement(plain_characters()));
  for (const CodePointRange& range : escaped) {
    for (uint32_t code = range.first; code <= range.last; ++code) {
      targets.push_back(builder_.literal(escape_of(code), next));
    }
  }
  return builder_.split(std::move(targets));
}

// A trie over the characters of the names; whatever leaves it is free.
StateId JsonRules::string_except(const std::vector<std::string>& names, StateId next) {
  TextTrie trie;
  for (const std::string& name : names) trie.add_characters(name);
  const std::vector<TextTrie::Node>& nodes = trie.nodes();
  const StateId close = builder_.literal("\"", next);
  const StateId free = builder_.repeat_plain(plain_character(), 0, kEndless, close);
  std::vector<StateId> states(nodes.size());
  for (size_t i = nodes.size(); i-- > 0 && !builder_.is_full();) {
    std::vector<StateId> targets;
    std::vector<CodePointRange> taken;
    for (const auto& [code, child] : nodes[i].children) {
      taken.push_back({code, code});
      const CharacterSet one = intersection({{code, code}}, plain_characters());
      targets.push_back(any_of(builder_, one, states[child]));
    }
    const CharacterSet others =
        intersection(plain_characters(), complement(normalized(std::move(taken))));
    targets.push_back(any_of(builder_, others, free));
    if (!nodes[i].is_text) targets.push_back(close);
    states[i] = builder_.split(std::move(targets));
  }
  return builder_.literal("\"", states[0]);
}

StateId JsonRules::whole_number(StateId next) {
  const StateId more = builder_.bytes('1', '9', digits(0, kMaxDigits - 1, next));
  const StateId natural = builder_.split({builder_.literal("0", next), more});
  return builder_.optional(builder_.literal("-", natural), natural);
}

StateId JsonRules::fraction_and_exponent(StateId next) {
  const StateId power = digits(1, 2, next);
  const StateId sign =
      builder_.split({power, builder_.byte_edges({{'+', '+', power}, {'-', '-', power}})});
  const StateId exponent =
      builder_.optional(builder_.byte_edges({{'E', 'E', sign}, {'e', 'e', sign}}), next);
  return builder_.optional(builder_.literal(".", digits(1, kMaxDigits, exponent)), exponent);
}

RuleId JsonRules::any_number() {
  if (!any_number_) {
    any_number_ = builder_.declare_rule();
    builder_.define_rule(*any_number_, whole_number(fraction_and_exponent(builder_.done())));
  }
  return *any_number_;
}

RuleId JsonRules::any_integer() {
  if (!any_integer_) {
    any_integer_ = builder_.declare_rule();
    builder_.define_rule(*any_integer_, whole_number(builder_.done()));
  }
  return *any_integer_;
}

RuleId JsonRules::any_array() {
  if (!any_array_) {
    any_array_ = builder_.declare_rule();
    const StateId end = builder_.literal("]", builder_.done());
    const StateId after = builder_.open_split();
    const StateId item = builder_.call(any_value(), after);
    builder_.define_split(after, {builder_.literal(",", line_blank(item)), line_blank(end)});
    builder_.define_rule(*any_array_,
                         builder_.literal("[", line_blank(builder_.split({item, end}))));
  }
  return *any_array_;
}

RuleId JsonRules::any_object() {
  if (!any_object_) {
    any_object_ = builder_.declare_rule();
    const StateId end = builder_.literal("}", builder_.done());
    const StateId after = builder_.open_split();
    const StateId pair = string(0, kEndless, colon(builder_.call(any_value(), after)));
    builder_.define_split(after, {builder_.literal(",", line_blank(pair)), line_blank(end)});
    builder_.define_rule(*any_object_,
                         builder_.literal("{", line_blank(builder_.split({pair, end}))));
  }
  return *any_object_;
}

RuleId JsonRules::any_value() {
  if (!any_value_) {
    any_value_ = builder_.declare_rule();
    const StateId done = builder_.done();
    builder_.define_rule(
        *any_value_,
        builder_.split({builder_.call(any_object(), done), builder_.call(any_array(), done),
                        string(0, kEndless, done), builder_.call(any_number(), done),
                        builder_.literal("true", done), builder_.literal("false", done),
                        builder_.literal("null", done)}));
  }
  return *any_value_;
}

}  // namespace winnow
