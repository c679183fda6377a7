#include "jinja/lexer.h"

#include <algorithm>
#include <array>

#include "jinja/errors.h"
#include "jinja/string_literal.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

// One line ending everywhere, and none at the very end.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalize_newlines(source)) {}

  std::vector<Token> run();

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  bool looking_at(std::string_view text) const { return rest().starts_with(text); }
  [[noreturn]] void fail(const std::string& message) const {
    throw TemplateError{ErrorCode::kInvalidArgument, message, line_};
  }

  void push(TokenKind kind, std::string value) {
    tokens_.push_back({kind, std::move(value), line_});
  }
  void advance(size_t count);
  void skip_space() { advance(leading_space(rest())); }
  void text_until_tag(size_t tag);
  std::string_view strip_before_tag(std::string_view text, char sign, bool is_output) const;
  void comment();
  bool raw_block();
  void tag(TokenKind begin, TokenKind end, std::string_view closer);
  bool try_close(std::string_view closer, TokenKind end);
  void tag_token();
  void number();
  void string();
  void operator_token();

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  // The last thing read ended a line: white space before a tag that follows belongs to that tag's
  // line.
  bool line_starting_ = true;
  std::vector<char> brackets_;
  std::vector<Token> tokens_;
};

void Lexer::advance(size_t count) {
  line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                       source_.begin() + static_cast<std::ptrdiff_t>(at_ + count),
                                       '\n'));
  at_ += count;
  if (count > 0) line_starting_ = source_[at_ - 1] == '\n';
}

std::string_view Lexer::strip_before_tag(std::string_view text, char sign, bool is_output) const {
  if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
  if (sign == '+' || is_output) return text;
  const size_t last_newline = text.rfind('\n');
  const size_t line_begin = last_newline == text.npos ? 0 : last_newline + 1;
  if (line_begin == 0 && !line_starting_) return text;
  const std::string_view indent = text.substr(line_begin);
  return leading_space(indent) == indent.size() ? text.substr(0, line_begin) : text;
}

void Lexer::text_until_tag(size_t tag) {
  const std::string_view text = std::string_view(source_).substr(at_, tag - at_);
  const char kind = source_[tag + 1];
  const char next = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
  const char sign = next == '-' || next == '+' ? next : '\0';
  // `{{+` is no white space control: there the sign belongs to the expression.
  const std::string_view kept = strip_before_tag(text, sign, kind == '{');
  if (!kept.empty()) push(TokenKind::kText, std::string(kept));
  advance(text.size());
  const bool control = sign == '-' || (sign == '+' && kind != '{');
  advance(control ? 3 : 2);
  line_starting_ = false;
}

std::vector<Token> Lexer::run() {
  while (at_ < source_.size()) {
    size_t tag_at = at_;
    for (;; ++tag_at) {
      tag_at = source_.find('{', tag_at);
      if (tag_at == source_.npos || tag_at + 1 >= source_.size()) {
        tag_at = source_.npos;
        break;
      }
      const char kind = source_[tag_at + 1];
      if (kind == '{' || kind == '%' || kind == '#') break;
    }
    if (tag_at == source_.npos) {
      push(TokenKind::kText, source_.substr(at_));
      advance(source_.size() - at_);
      break;
    }
    const char kind = source_[tag_at + 1];
    text_until_tag(tag_at);
    if (kind == '#') {
      comment();
    } else if (kind == '{') {
      tag(TokenKind::kOutputBegin, TokenKind::kOutputEnd, "}}");
    } else if (!raw_block()) {
      tag(TokenKind::kBlockBegin, TokenKind::kBlockEnd, "%}");
    }
  }
  push(TokenKind::kEnd, "");
  return std::move(tokens_);
}

void Lexer::comment() {
  const size_t close = source_.find("#}", at_);
  if (close == source_.npos) fail("missing end of comment tag '#}'");
  const char sign = close > at_ ? source_[close - 1] : '\0';
  advance(close + 2 - at_);
  if (sign == '-') {
    skip_space();
  } else if (sign != '+' && looking_at("\n")) {
    advance(1);
  }
}

// Reads `raw %} ... {% endraw %}` if that is what follows; what is inside is text.
bool Lexer::raw_block() {
  size_t at = at_ + leading_space(rest());
  if (std::string_view(source_).substr(at, 3) != "raw") return false;
  at += 3;
  at += leading_space(std::string_view(source_).substr(at));
  const std::string_view after_name = std::string_view(source_).substr(at);
  const bool strip = after_name.starts_with("-%}");
  if (!strip && !after_name.starts_with("%}")) return false;
  advance(at + (strip ? 3 : 2) - at_);
  if (strip) skip_space();

  for (size_t open = source_.find("{%", at_); open != source_.npos;
       open = source_.find("{%", open + 1)) {
    size_t inner = open + 2;
    const char next = inner < source_.size() ? source_[inner] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    if (sign) ++inner;
    inner += leading_space(std::string_view(source_).substr(inner));
    if (std::string_view(source_).substr(inner, 6) != "endraw") continue;
    inner += 6;
    inner += leading_space(std::string_view(source_).substr(inner));
    const std::string_view closer = std::string_view(source_).substr(inner);
    const char end_sign = closer.starts_with("-%}") || closer.starts_with("+%}") ? closer[0] : '\0';
    if (!end_sign && !closer.starts_with("%}")) continue;
    const std::string_view kept =
        strip_before_tag(std::string_view(source_).substr(at_, open - at_), sign, false);
    if (!kept.empty()) push(TokenKind::kText, std::string(kept));
    advance(inner + (end_sign ? 3 : 2) - at_);
    if (end_sign == '-') {
      skip_space();
    } else if (!end_sign && looking_at("\n")) {
      advance(1);
    }
    return true;
  }
  fail("missing end of raw directive");
}

bool Lexer::try_close(std::string_view closer, TokenKind end) {
  if (!brackets_.empty()) return false;
  const bool strip = looking_at("-") && rest().substr(1).starts_with(closer);
  const bool keep =
      end == TokenKind::kBlockEnd && looking_at("+") && rest().substr(1).starts_with(closer);
  if (!strip && !keep && !looking_at(closer)) return false;
  push(end, "");
  advance(closer.size() + (strip || keep ? 1 : 0));
  if (strip) {
    skip_space();
  } else if (!keep && end == TokenKind::kBlockEnd && looking_at("\n")) {
    advance(1);
  }
  return true;
}

void Lexer::tag(TokenKind begin, TokenKind end, std::string_view closer) {
  push(begin, "");
  brackets_.clear();
  while (true) {
    if (try_close(closer, end)) return;
    if (at_ >= source_.size()) fail("unexpected end of template inside a tag");
    const size_t space = leading_space(rest());
    if (space > 0) {
      advance(space);
    } else {
      tag_token();
    }
  }
}

void Lexer::tag_token() {
  const char c = source_[at_];
  if (is_digit(c)) return number();
  if (is_name_start(c)) {
    size_t end = at_;
    while (end < source_.size() && is_name_char(source_[end])) ++end;
    push(TokenKind::kName, source_.substr(at_, end - at_));
    return advance(end - at_);
  }
  if (c == '\'' || c == '"') return string();
  operator_token();
}

// Digits with single underscores between them, from `at`.
size_t digits_end(std::string_view source, size_t at) {
  while (at < source.size() &&
         (is_digit(source[at]) ||
          (source[at] == '_' && at + 1 < source.size() && is_digit(source[at + 1])))) {
    ++at;
  }
  return at;
}

void Lexer::number() {
  const std::string_view source = source_;
  size_t end = at_;
  const char marker = at_ + 1 < source.size() ? static_cast<char>(source[at_ + 1] | 0x20) : '\0';
  TokenKind kind = TokenKind::kInteger;
  if (source[at_] == '0' && (marker == 'x' || marker == 'b' || marker == 'o')) {
    end += 2;
    while (end < source.size() &&
           (std::isxdigit(static_cast<unsigned char>(source[end])) || source[end] == '_'))
      ++end;
  } else {
    end = digits_end(source, at_);
    // After a dot ("items.0.1") a number is an index.
    const bool may_be_float = at_ == 0 || source[at_ - 1] != '.';
    if (may_be_float && end + 1 < source.size() && source[end] == '.' &&
        is_digit(source[end + 1])) {
      end = digits_end(source, end + 1);
      kind = TokenKind::kFloat;
    }
    if (may_be_float && end < source.size() && (source[end] | 0x20) == 'e') {
      size_t exponent = end + 1;
      if (exponent < source.size() && (source[exponent] == '+' || source[exponent] == '-'))
        ++exponent;
      if (exponent < source.size() && is_digit(source[exponent])) {
        end = digits_end(source, exponent);
        kind = TokenKind::kFloat;
      }
    }
  }
  std::string value(source.substr(at_, end - at_));
  std::erase(value, '_');
  push(kind, std::move(value));
  advance(end - at_);
}

void Lexer::string() {
  const char quote = source_[at_];
  size_t end = at_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail("unterminated string");
  push(TokenKind::kString,
       decode_string_literal(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
  advance(end + 1 - at_);
}

void Lexer::operator_token() {
  static constexpr std::array<std::string_view, 7> kDouble = {
      "//", "**", "==", "!=", ">=", "<=", ""};
  static constexpr std::string_view kSingle = "+-*/%~[](){}><=.:|,;";
  std::string_view op;
  for (const std::string_view candidate : kDouble) {
    if (!candidate.empty() && looking_at(candidate)) op = candidate;
  }
  if (op.empty() && kSingle.find(source_[at_]) != kSingle.npos) op = rest().substr(0, 1);
  if (op.empty()) {
    const Utf8Char c = utf8_at(source_, at_);
    fail("unexpected char '" + source_.substr(at_, c.num_bytes) + "'");
  }
  const char c = op[0];
  if (op.size() == 1 && (c == '(' || c == '[' || c == '{')) {
    brackets_.push_back(c == '(' ? ')' : (c == '[' ? ']' : '}'));
  } else if (op.size() == 1 && (c == ')' || c == ']' || c == '}')) {
    if (brackets_.empty()) fail(std::string("unexpected '") + c + "'");
    if (brackets_.back() != c) {
      fail(std::string("unexpected '") + c + "', expected '" + brackets_.back() + "'");
    }
    brackets_.pop_back();
  }
  push(TokenKind::kOperator, std::string(op));
  advance(op.size());
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "end of statement block";
    case TokenKind::kOutputBegin:
      return "'{{'";
    case TokenKind::kOutputEnd:
      return "end of print statement";
    case TokenKind::kString:
      return "string '" + token.value + "'";
    case TokenKind::kEnd:
      return "end of template";
    default:
      return "'" + token.value + "'";
  }
}

}  // namespace winnow::jinja
