#include <algorithm>
#include <charconv>

#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/parser.h"
#include "jinja/predicates.h"

namespace winnow::jinja {

bool Parser::at_tuple_end() const {
  const Token& token = current();
  return token.kind == TokenKind::kOutputEnd || token.kind == TokenKind::kBlockEnd ||
         token.is_operator(")");
}

// One expression, or several separated by commas. Without `with_conditional` a trailing `if`
// belongs to the statement.
ExprPtr Parser::parse_tuple(bool with_conditional) {
  const int line = current().line;
  ExprPtr first = parse_expression(with_conditional);
  if (!current().is_operator(",")) return first;
  ListExpr tuple{{}, ListKind::kTuple};
  tuple.items.push_back(std::move(first));
  while (skip_operator(",")) {
    if (at_tuple_end()) break;
    tuple.items.push_back(parse_expression(with_conditional));
  }
  return make_expr(line, std::move(tuple));
}

ExprPtr Parser::parse_expression(bool with_conditional) {
  const Nesting nesting(*this);
  return with_conditional ? parse_conditional() : parse_or();
}

ExprPtr Parser::parse_conditional() {
  const int line = current().line;
  ExprPtr value = parse_or();
  while (skip_name("if")) {
    ExprPtr condition = parse_or();
    ExprPtr otherwise;
    if (skip_name("else")) {
      const Nesting nesting(*this);
      otherwise = parse_conditional();
    }
    value = make_expr(
        line, ConditionalExpr{std::move(condition), std::move(value), std::move(otherwise)});
  }
  return value;
}

ExprPtr Parser::parse_or() {
  const int line = current().line;
  ExprPtr left = parse_and();
  while (skip_name("or")) {
    left = make_expr(line, LogicExpr{false, std::move(left), parse_and()});
  }
  return left;
}

ExprPtr Parser::parse_and() {
  const int line = current().line;
  ExprPtr left = parse_not();
  while (skip_name("and")) {
    left = make_expr(line, LogicExpr{true, std::move(left), parse_not()});
  }
  return left;
}

ExprPtr Parser::parse_not() {
  const int line = current().line;
  if (!skip_name("not")) return parse_comparison();
  const Nesting nesting(*this);
  return make_expr(line, UnaryExpr{UnaryOp::kNot, parse_not()});
}

namespace {

std::optional<CompareOp> compare_op(const Token& token) {
  static constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"==", CompareOp::kEq}, {"!=", CompareOp::kNe}, {"<", CompareOp::kLt},
      {"<=", CompareOp::kLe}, {">", CompareOp::kGt},  {">=", CompareOp::kGe}};
  for (const auto& [op, kind] : kOps) {
    if (token.is_operator(op)) return kind;
  }
  if (token.is_name("in")) return CompareOp::kIn;
  return std::nullopt;
}

}  // namespace

ExprPtr Parser::parse_comparison() {
  const int line = current().line;
  ExprPtr first = parse_sum();
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
  while (true) {
    if (const auto op = compare_op(current())) {
      next();
      rest.emplace_back(*op, parse_sum());
    } else if (current().is_name("not") && peek().is_name("in")) {
      next();
      next();
      rest.emplace_back(CompareOp::kNotIn, parse_sum());
    } else {
      break;
    }
  }
  if (rest.empty()) return first;
  return make_expr(line, CompareExpr{std::move(first), std::move(rest)});
}

ExprPtr Parser::parse_sum() {
  const int line = current().line;
  ExprPtr left = parse_concat();
  while (current().is_operator("+") || current().is_operator("-")) {
    const BinaryOp op = next().value == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
    left = make_expr(line, BinaryExpr{op, std::move(left), parse_concat()});
  }
  return left;
}

ExprPtr Parser::parse_concat() {
  const int line = current().line;
  ExprPtr first = parse_product();
  if (!current().is_operator("~")) return first;
  ConcatExpr concat;
  concat.parts.push_back(std::move(first));
  while (skip_operator("~")) concat.parts.push_back(parse_product());
  return make_expr(line, std::move(concat));
}

ExprPtr Parser::parse_product() {
  static constexpr std::pair<std::string_view, BinaryOp> kOps[] = {{"*", BinaryOp::kMul},
                                                                   {"/", BinaryOp::kDiv},
                                                                   {"//", BinaryOp::kFloorDiv},
                                                                   {"%", BinaryOp::kMod}};
  const int line = current().line;
  ExprPtr left = parse_power();
  while (true) {
    const auto* op = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& known) {
      return current().is_operator(known.first);
    });
    if (op == std::end(kOps)) return left;
    next();
    left = make_expr(line, BinaryExpr{op->second, std::move(left), parse_power()});
  }
}

ExprPtr Parser::parse_power() {
  const int line = current().line;
  ExprPtr left = parse_unary(true);
  while (skip_operator("**")) {
    left = make_expr(line, BinaryExpr{BinaryOp::kPow, std::move(left), parse_unary(true)});
  }
  return left;
}

ExprPtr Parser::parse_unary(bool with_filters) {
  const Nesting nesting(*this);
  const int line = current().line;
  ExprPtr operand;
  if (skip_operator("-")) {
    operand = make_expr(line, UnaryExpr{UnaryOp::kNegate, parse_unary(false)});
  } else if (skip_operator("+")) {
    operand = make_expr(line, UnaryExpr{UnaryOp::kPlus, parse_unary(false)});
  } else {
    operand = parse_primary();
  }
  operand = parse_postfix(std::move(operand));
  return with_filters ? parse_filters_and_tests(std::move(operand)) : std::move(operand);
}

ExprPtr Parser::parse_primary() {
  const Token& token = current();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::kName:
      return parse_name();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return parse_number();
    case TokenKind::kString: {
      std::string text = next().value;
      while (current().kind == TokenKind::kString) text += next().value;
      return make_expr(line, ConstExpr{Value(Text(std::move(text), Origin::kTemplate))});
    }
    default:
      break;
  }
  if (token.is_operator("(")) return parse_parenthesized();
  if (token.is_operator("[")) return parse_list();
  if (token.is_operator("{")) return parse_dict();
  fail("unexpected " + describe(token));
}

ExprPtr Parser::parse_name() {
  const int line = current().line;
  const std::string name = next().value;
  if (name == "true" || name == "True") return make_expr(line, ConstExpr{Value(true)});
  if (name == "false" || name == "False") return make_expr(line, ConstExpr{Value(false)});
  if (name == "none" || name == "None") return make_expr(line, ConstExpr{Value(None{})});
  for (MacroDef* macro : open_macros_) {
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
    macro->uses_caller |= name == "caller";
  }
  return make_expr(line, NameExpr{name});
}

ExprPtr Parser::parse_number() {
  const Token token = next();
  const char* begin = token.value.data();
  const char* end = begin + token.value.size();
  if (token.kind == TokenKind::kFloat) {
    double number = 0;
    const auto read = std::from_chars(begin, end, number);
    if (read.ec != std::errc() || read.ptr != end)
      fail("number '" + token.value + "' is out of range");
    return make_expr(token.line, ConstExpr{Value(number)});
  }
  int base = 10;
  if (token.value.size() > 2 && token.value[0] == '0') {
    const char marker = static_cast<char>(token.value[1] | 0x20);
    base = marker == 'x' ? 16 : (marker == 'b' ? 2 : (marker == 'o' ? 8 : 10));
    if (base != 10) begin += 2;
  }
  int64_t number = 0;
  const auto read = std::from_chars(begin, end, number, base);
  if (read.ec != std::errc() || read.ptr != end)
    fail("number '" + token.value + "' is out of range");
  return make_expr(token.line, ConstExpr{Value::number(number)});
}

ExprPtr Parser::parse_parenthesized() {
  const int line = next().line;
  if (skip_operator(")")) return make_expr(line, ListExpr{{}, ListKind::kTuple});
  ExprPtr inner = parse_tuple(true);
  expect_operator(")");
  return inner;
}

ExprPtr Parser::parse_list() {
  const int line = next().line;
  ListExpr list{{}, ListKind::kList};
  while (!skip_operator("]")) {
    if (!list.items.empty()) expect_operator(",");
    if (skip_operator("]")) break;
    list.items.push_back(parse_expression());
  }
  return make_expr(line, std::move(list));
}

ExprPtr Parser::parse_dict() {
  const int line = next().line;
  DictExpr dict;
  while (!skip_operator("}")) {
    if (!dict.entries.empty()) expect_operator(",");
    if (skip_operator("}")) break;
    ExprPtr key = parse_expression();
    expect_operator(":");
    dict.entries.emplace_back(std::move(key), parse_expression());
  }
  return make_expr(line, std::move(dict));
}

ExprPtr Parser::parse_postfix(ExprPtr operand) {
  while (true) {
    if (current().is_operator(".")) {
      operand = parse_attribute(std::move(operand));
    } else if (current().is_operator("[")) {
      operand = parse_subscript(std::move(operand));
    } else if (current().is_operator("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExprPtr Parser::parse_filters_and_tests(ExprPtr operand) {
  while (true) {
    if (skip_operator("|")) {
      operand = parse_filter(std::move(operand));
    } else if (current().is_name("is")) {
      operand = parse_predicate(std::move(operand));
    } else if (current().is_operator("(")) {
      operand = parse_call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExprPtr Parser::parse_attribute(ExprPtr operand) {
  const int line = next().line;
  if (current().kind == TokenKind::kInteger) {
    return make_expr(line, ItemExpr{std::move(operand), parse_number()});
  }
  if (current().kind != TokenKind::kName)
    fail("expected name or number, got " + describe(current()));
  return make_expr(line, AttributeExpr{std::move(operand), next().value});
}

ExprPtr Parser::parse_subscript(ExprPtr operand) {
  const int line = next().line;
  SliceExpr slice{std::move(operand), nullptr, nullptr, nullptr};
  const auto at_bound_end = [&] {
    return current().is_operator(":") || current().is_operator("]");
  };
  if (!current().is_operator(":")) {
    ExprPtr key = parse_tuple(true);
    if (skip_operator("]"))
      return make_expr(line, ItemExpr{std::move(slice.object), std::move(key)});
    slice.start = std::move(key);
  }
  expect_operator(":");
  if (!at_bound_end()) slice.stop = parse_expression();
  if (skip_operator(":") && !at_bound_end()) slice.step = parse_expression();
  expect_operator("]");
  return make_expr(line, std::move(slice));
}

CallArgs Parser::parse_call_args() {
  CallArgs args;
  expect_operator("(");
  for (bool first = true; !skip_operator(")"); first = false) {
    if (!first) expect_operator(",");
    if (skip_operator(")")) break;
    if (skip_operator("*")) {
      if (args.spread || args.spread_named) fail("invalid syntax for function call expression");
      args.spread = parse_expression();
    } else if (skip_operator("**")) {
      if (args.spread_named) fail("invalid syntax for function call expression");
      args.spread_named = parse_expression();
    } else if (current().kind == TokenKind::kName && peek().is_operator("=")) {
      if (args.spread_named) fail("invalid syntax for function call expression");
      std::string name = next().value;
      next();
      args.named.emplace_back(std::move(name), parse_expression());
    } else {
      if (!args.named.empty() || args.spread || args.spread_named) {
        fail("invalid syntax for function call expression");
      }
      args.positional.push_back(parse_expression());
    }
  }
  return args;
}

ExprPtr Parser::parse_call(ExprPtr callee) {
  const int line = current().line;
  return make_expr(line, CallExpr{std::move(callee), parse_call_args()});
}

// After the bar: the filter's name and arguments.
ExprPtr Parser::parse_filter(ExprPtr operand) {
  const int line = current().line;
  const std::string name = expect_name();
  const Filter* filter = find_filter(name);
  if (!filter) fail_unknown("filter '" + name + "'");
  CallArgs args;
  if (current().is_operator("(")) args = parse_call_args();
  return make_expr(line, FilterExpr{std::move(operand), filter, std::move(args)});
}

ExprPtr Parser::parse_filter_chain_head() {
  ExprPtr chain = parse_filter(nullptr);
  while (skip_operator("|")) chain = parse_filter(std::move(chain));
  return chain;
}

ExprPtr Parser::parse_predicate(ExprPtr operand) {
  const int line = next().line;
  const bool negated = skip_name("not");
  const std::string name = expect_name();
  const Predicate* predicate = find_predicate(name);
  if (!predicate) fail_unknown("test '" + name + "'");
  CallArgs args;
  const Token& token = current();
  const bool is_argument = token.kind == TokenKind::kName || token.kind == TokenKind::kString ||
                           token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat ||
                           token.is_operator("[") || token.is_operator("{");
  const bool is_keyword = token.is_name("else") || token.is_name("or") || token.is_name("and");
  if (token.is_operator("(")) {
    args = parse_call_args();
  } else if (is_argument && !is_keyword) {
    if (token.is_name("is")) fail("You cannot chain multiple tests with is");
    args.positional.push_back(parse_postfix(parse_primary()));
  }
  ExprPtr test = make_expr(line, PredicateExpr{std::move(operand), predicate, std::move(args)});
  return negated ? make_expr(line, UnaryExpr{UnaryOp::kNot, std::move(test)}) : std::move(test);
}

}  // namespace winnow::jinja
