// From template source to tokens: text between tags with white space control applied (trim_blocks
// and lstrip_blocks are on, as chat templates expect), comments and raw blocks resolved, and the
// tokens inside tags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace winnow::jinja {

enum class TokenKind {
  kText,
  kBlockBegin,
  kBlockEnd,
  kOutputBegin,
  kOutputEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string value;  // text, name, decoded string, digits, operator
  int line = 1;

  bool is_name(std::string_view name) const { return kind == TokenKind::kName && value == name; }
  bool is_operator(std::string_view op) const {
    return kind == TokenKind::kOperator && value == op;
  }
};

// Ends with a kEnd token. Fails on what Jinja's lexer refuses.
std::vector<Token> tokenize(std::string_view source);

// How an error message shows a token.
std::string describe(const Token& token);

}  // namespace winnow::jinja
