#include "constrain/gbnf.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/utf8.h"
#include "constrain/text_grammar.h"

namespace winnow {
namespace {

struct Part;
using PartPtr = std::unique_ptr<Part>;

struct Part {
  enum class Kind { kSet, kLiteral, kRule, kSequence, kChoice, kRepeat };
  Kind kind = Kind::kSequence;
  CharacterSet set = {};
  std::string literal = {};
  RuleId rule = 0;
  std::vector<PartPtr> parts = {};
  int32_t min = 0, max = 0;
};

PartPtr part_of(Part::Kind kind) {
  auto part = std::make_unique<Part>();
  part->kind = kind;
  return part;
}

bool is_rule_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
}

void append_utf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  const int size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  out += static_cast<char>((0xF00 >> size) | (code >> (6 * (size - 1))));
  for (int i = size - 2; i >= 0; --i) out += static_cast<char>(0x80 | (code >> (6 * i) & 0x3F));
}

class Parser {
 public:
  Parser(GrammarBuilder& builder, std::string_view text) : builder_(builder), text_(text) {}
  Result<RuleId> parse();

 private:
  struct Rule {
    RuleId id = 0;
    ptrdiff_t first_mention = 0;  // position in the text
    bool defined = false;
  };

  // "grammar: line L, column C", of characters, both from 1.
  std::string place(ptrdiff_t pos) const;
  Error broken(const char* expected) const {
    return fail(ErrorCode::kInvalidArgument, "%s: expected %s", place(pos_).c_str(), expected);
  }
  bool at_end() const { return rest().empty(); }
  std::string_view rest() const { return text_.substr(static_cast<size_t>(pos_)); }
  bool next_is(char byte) const { return !at_end() && rest()[0] == byte; }
  bool take(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    pos_ += static_cast<ptrdiff_t>(text.size());
    return true;
  }
  // Comments too; line breaks where they do not end a rule.
  void skip_blanks(bool across_lines);
  std::string_view take_name();
  Rule& rule_of(std::string_view name);

  Status rule();
  Status refuse_left_recursion() const;
  Result<PartPtr> choice(int depth);
  Result<PartPtr> sequence(int depth);
  Result<PartPtr> item(int depth);
  Result<PartPtr> literal();
  Result<PartPtr> bracket();
  Result<PartPtr> quantified(PartPtr part);
  Result<int32_t> repeat_count();
  Result<uint32_t> character();
  Result<uint32_t> hex(size_t num_digits);

  StateId states(const Part& part, StateId next);
  StateId repeat(const Part& part, StateId next);

  GrammarBuilder& builder_;
  std::string_view text_;
  ptrdiff_t pos_ = 0;
  std::map<std::string, Rule, std::less<>> rules_;
};

std::string Parser::place(ptrdiff_t pos) const {
  const std::string_view before = text_.substr(0, static_cast<size_t>(pos));
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 = 0: the first line
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t column = 1 + num_characters(before.substr(line_begin));
  return "grammar: line " + std::to_string(line) + ", column " + std::to_string(column);
}

void Parser::skip_blanks(bool across_lines) {
  while (!at_end()) {
    const char byte = rest()[0];
    if (byte == '#') {
      pos_ += static_cast<ptrdiff_t>(std::min(rest().find('\n'), rest().size()));
    } else if (byte == ' ' || byte == '\t' || byte == '\r' || (across_lines && byte == '\n')) {
      ++pos_;
    } else {
      return;
    }
  }
}

std::string_view Parser::take_name() {
  const auto end = std::find_if_not(rest().begin(), rest().end(), is_rule_name_byte);
  const std::string_view name = rest().substr(0, static_cast<size_t>(end - rest().begin()));
  pos_ += static_cast<ptrdiff_t>(name.size());
  return name;
}

Parser::Rule& Parser::rule_of(std::string_view name) {
  const auto found = rules_.find(name);
  if (found != rules_.end()) return found->second;
  const ptrdiff_t begin = pos_ - std::ssize(name);
  return rules_.emplace(name, Rule{builder_.declare_rule(), begin, false}).first->second;
}

Result<RuleId> Parser::parse() {
  for (skip_blanks(true); !at_end(); skip_blanks(true)) {
    TRY_STATUS(rule());
    if (builder_.is_full()) return broken("a smaller grammar before this");
  }
  for (const auto& [name, known] : rules_) {
    if (known.defined) continue;
    return fail(ErrorCode::kInvalidArgument, "%s: rule '%s' is not defined",
                place(known.first_mention).c_str(), escaped(name, 80).c_str());
  }
  const auto root = rules_.find("root");
  if (root == rules_.end()) {
    return fail(ErrorCode::kInvalidArgument, "grammar: expected a rule 'root', found none");
  }
  TRY_STATUS(refuse_left_recursion());
  return root->second.id;
}

Status Parser::refuse_left_recursion() const {
  for (const RuleId recursive : builder_.left_recursion()) {
    for (const auto& [name, known] : rules_) {
      if (known.id != recursive) continue;
      return fail(ErrorCode::kInvalidArgument,
                  "%s: expected a character before rule '%s' leads back to itself, found none",
                  place(known.first_mention).c_str(), escaped(name, 80).c_str());
    }
  }
  return Ok{};
}

Status Parser::rule() {
  const std::string_view name = take_name();
  if (name.empty()) return broken("the name of a rule");
  Rule& known = rule_of(name);
  if (known.defined) return broken("no second rule of the same name before this");
  known.defined = true;
  const RuleId id = known.id;
  skip_blanks(false);
  if (!take("::=")) return broken("'::='");
  skip_blanks(true);
  TRY(const PartPtr whole, choice(0));
  if (!at_end() && !next_is('\n')) return broken("the end of the line");
  builder_.define_rule(id, states(*whole, builder_.done()));
  return Ok{};
}

Result<PartPtr> Parser::choice(int depth) {
  if (depth > kMaxGbnfDepth) return broken("no group this deep");
  PartPtr whole = part_of(Part::Kind::kChoice);
  for (;;) {
    TRY(PartPtr part, sequence(depth));
    whole->parts.push_back(std::move(part));
    if (!take("|")) return whole;
    skip_blanks(true);
  }
}

Result<PartPtr> Parser::sequence(int depth) {
  PartPtr whole = part_of(Part::Kind::kSequence);
  while (!at_end() && !next_is('|') && !next_is(')') && !next_is('\n')) {
    TRY(PartPtr part, item(depth));
    TRY(part, quantified(std::move(part)));
    whole->parts.push_back(std::move(part));
    skip_blanks(depth > 0);
  }
  return whole;
}

Result<PartPtr> Parser::item(int depth) {
  if (take("\"")) return literal();
  if (take("[")) return bracket();
  if (take(".")) {
    PartPtr any = part_of(Part::Kind::kSet);
    any->set = complement({});
    return any;
  }
  if (take("(")) {
    skip_blanks(true);
    TRY(PartPtr inside, choice(depth + 1));
    if (!take(")")) return broken("')'");
    return inside;
  }
  if (next_is('<') || next_is('!')) {
    return fail(ErrorCode::kUnsupported, "%s: tokens are not supported", place(pos_).c_str());
  }
  const std::string_view name = take_name();
  if (name.empty()) return broken("a literal, a class, a group or the name of a rule");
  PartPtr called = part_of(Part::Kind::kRule);
  called->rule = rule_of(name).id;
  return called;
}

Result<PartPtr> Parser::literal() {
  PartPtr part = part_of(Part::Kind::kLiteral);
  while (!take("\"")) {
    TRY(const uint32_t code, character());
    append_utf8(code, part->literal);
  }
  return part;
}

Result<PartPtr> Parser::bracket() {
  const bool negated = take("^");
  std::vector<CodePointRange> ranges;
  while (!take("]")) {
    TRY(const uint32_t first, character());
    uint32_t last = first;
    if (next_is('-') && !rest().starts_with("-]")) {
      ++pos_;
      TRY(last, character());
    }
    if (first > last) return broken("a range of characters in order before this");
    ranges.push_back({first, last});
  }
  PartPtr part = part_of(Part::Kind::kSet);
  part->set = normalized(std::move(ranges));
  if (negated) part->set = complement(part->set);
  return part;
}

Result<uint32_t> Parser::hex(size_t num_digits) {
  uint32_t value = 0;
  for (size_t i = 0; i < num_digits; ++i, ++pos_) {
    const char byte = at_end() ? '\0' : rest()[0];
    const char lower = static_cast<char>(byte | 0x20);
    const bool is_digit = byte >= '0' && byte <= '9';
    if (!is_digit && !(lower >= 'a' && lower <= 'f')) return broken("a hexadecimal digit");
    value = value * 16 + static_cast<uint32_t>(is_digit ? byte - '0' : lower - 'a' + 10);
  }
  const bool is_character = value <= kLastCodePoint && !(value >= 0xD800 && value <= 0xDFFF);
  if (!is_character) return broken("a Unicode character before this");
  return value;
}

// One character of a literal or class.
Result<uint32_t> Parser::character() {
  if (at_end() || next_is('\n')) return broken("the end of a literal or class");
  if (!take("\\")) {
    const Utf8Unit unit = first_utf8_unit(rest());
    const uint32_t code = code_point_of(rest().substr(0, unit.num_bytes));
    pos_ += static_cast<ptrdiff_t>(unit.num_bytes);
    return code;
  }
  if (take("x")) return hex(2);
  if (take("u")) return hex(4);
  if (take("U")) return hex(8);
  const std::pair<std::string_view, char> kEscapes[] = {
      {"n", '\n'}, {"r", '\r'}, {"t", '\t'}, {"\\", '\\'},
      {"\"", '"'}, {"[", '['},  {"]", ']'},  {"-", '-'},
  };
  for (const auto& [letter, code] : kEscapes) {
    if (take(letter)) return static_cast<uint32_t>(code);
  }
  return broken("a known escape");
}

Result<int32_t> Parser::repeat_count() {
  if (at_end() || rest()[0] < '0' || rest()[0] > '9') return broken("a number");
  int32_t count = 0;
  for (; !at_end() && rest()[0] >= '0' && rest()[0] <= '9'; ++pos_) {
    count = count * 10 + (rest()[0] - '0');
    if (count > kMaxGbnfRepeat) return broken("a repetition of at most 2000");
  }
  return count;
}

Result<PartPtr> Parser::quantified(PartPtr part) {
  while (!at_end()) {
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
        if (!next_is('}')) {
          TRY(max, repeat_count());
        }
      }
      if (!take("}")) return broken("'}'");
      if (min > max) return broken("a repetition whose limits are in order before this");
    } else {
      return part;
    }
    // Repetitions of a repetition would be levels without limit.
    if (part->kind == Part::Kind::kRepeat) return broken("no second repetition before this");
    PartPtr repeated = part_of(Part::Kind::kRepeat);
    repeated->min = min;
    repeated->max = max;
    repeated->parts.push_back(std::move(part));
    part = std::move(repeated);
  }
  return part;
}

StateId Parser::states(const Part& part, StateId next) {
  if (builder_.is_full()) return next;
  switch (part.kind) {
    case Part::Kind::kSet:
      return any_of(builder_, part.set, next);
    case Part::Kind::kLiteral:
      return builder_.literal(part.literal, next);
    case Part::Kind::kRule:
      return builder_.call(part.rule, next);
    case Part::Kind::kRepeat:
      return repeat(part, next);
    case Part::Kind::kSequence:
      for (size_t i = part.parts.size(); i-- > 0;) next = states(*part.parts[i], next);
      return next;
    case Part::Kind::kChoice: {
      std::vector<StateId> targets;
      for (const PartPtr& one : part.parts) targets.push_back(states(*one, next));
      return builder_.split(std::move(targets));
    }
  }
  return next;
}

StateId Parser::repeat(const Part& part, StateId next) {
  const auto inside = [&](StateId end) { return states(*part.parts.front(), end); };
  return builder_.repeat(inside, part.min, part.max, next);
}

}  // namespace

Result<RuleId> add_gbnf(GrammarBuilder& builder, std::string_view text) {
  if (text.size() > kMaxGbnfBytes) {
    return fail(ErrorCode::kInvalidArgument, "grammar: expected at most %zu bytes, found %zu",
                kMaxGbnfBytes, text.size());
  }
  if (valid_utf8_prefix(text) != text.size()) {
    return fail(ErrorCode::kInvalidArgument, "grammar: expected UTF-8");
  }
  return Parser(builder, text).parse();
}

}  // namespace winnow
