#include "jinja/parser.h"

#include <algorithm>

#include "jinja/errors.h"

namespace winnow::jinja {
namespace {

constexpr int kMaxNesting = 200;
// Chains of operators nest to the left without nesting in the source.
constexpr int kMaxExprDepth = 300;

}  // namespace

Parser::Nesting::Nesting(Parser& parser) : parser_(parser) {
  if (parser.depth_ >= kMaxNesting) {
    parser.fail("constructs are nested more than " + std::to_string(kMaxNesting) + " deep");
  }
  ++parser.depth_;
}

ExprPtr Parser::checked(ExprPtr expr) const {
  expr->depth = 1 + operand_depth(*expr);
  if (expr->depth > kMaxExprDepth) {
    fail("an expression is nested more than " + std::to_string(kMaxExprDepth) + " operators deep");
  }
  return expr;
}

Token Parser::next() {
  Token token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

bool Parser::skip_operator(std::string_view op) {
  if (!current().is_operator(op)) return false;
  next();
  return true;
}

void Parser::expect_operator(std::string_view op) {
  if (!skip_operator(op))
    fail("expected token '" + std::string(op) + "', got " + describe(current()));
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::kName) fail("expected a name, got " + describe(current()));
  return next().value;
}

void Parser::fail(const std::string& message) const {
  throw TemplateError{ErrorCode::kInvalidArgument, message, current().line};
}

void Parser::fail_unknown(const std::string& construct) const {
  throw TemplateError{ErrorCode::kUnsupported, "unknown " + construct, current().line};
}

Body Parser::parse_template() {
  Body body = parse_body({});
  if (current().kind != TokenKind::kEnd) fail("unexpected " + describe(current()));
  return body;
}

// Stops at the name of one of `end_tags`, or at the end of the template if there are none.
Body Parser::parse_body(std::initializer_list<std::string_view> end_tags) {
  const Nesting nesting(*this);
  Body body;
  while (true) {
    const int line = current().line;
    if (current().kind == TokenKind::kText) {
      body.push_back(make_stmt(line, TextStmt{Text(next().value, Origin::kTemplate)}));
    } else if (current().kind == TokenKind::kOutputBegin) {
      next();
      body.push_back(make_stmt(line, OutputStmt{parse_tuple(true)}));
      if (current().kind != TokenKind::kOutputEnd) {
        fail("expected token 'end of print statement', got " + describe(current()));
      }
      next();
    } else if (current().kind == TokenKind::kBlockBegin) {
      next();
      const bool ends = std::any_of(end_tags.begin(), end_tags.end(),
                                    [&](std::string_view tag) { return current().is_name(tag); });
      if (ends) return body;
      body.push_back(parse_statement());
      if (current().kind != TokenKind::kBlockEnd) {
        fail("expected token 'end of statement block', got " + describe(current()));
      }
      next();
    } else if (end_tags.size() > 0) {
      fail("unexpected " + describe(current()) + ", expected '" +
           std::string(*(end_tags.end() - 1)) + "'");
    } else {
      return body;
    }
  }
}

void Parser::end_block() {
  if (current().kind != TokenKind::kBlockEnd) {
    fail("expected token 'end of statement block', got " + describe(current()));
  }
  next();
}

std::unique_ptr<Stmt> Parser::parse_statement() {
  const int line = current().line;
  if (current().kind != TokenKind::kName) fail("tag name expected, got " + describe(current()));
  const std::string tag = current().value;
  if (tag == "if") return parse_if(line);
  if (tag == "for") return parse_for(line);
  if (tag == "set") return parse_set(line);
  if (tag == "macro") return parse_macro(line);
  if (tag == "call") return parse_call_block(line);
  if (tag == "filter") return parse_filter_block(line);
  if (tag == "with") return parse_with(line);
  if (tag == "break" || tag == "continue") return parse_loop_control(line, tag == "break");
  if (tag == "generation") return parse_scope(line, "endgeneration");
  if (tag.starts_with("end") || tag == "else" || tag == "elif")
    fail("unexpected tag '" + tag + "'");
  fail_unknown("tag '" + tag + "'");
}

std::unique_ptr<Stmt> Parser::parse_if(int line) {
  IfStmt statement;
  next();
  ExprPtr condition = parse_tuple(false);
  while (true) {
    end_block();
    Body body = condition ? parse_body({"elif", "else", "endif"}) : parse_body({"endif"});
    const bool was_else = !condition;
    statement.branches.emplace_back(std::move(condition), std::move(body));
    if (skip_name("endif")) break;
    if (was_else) fail("expected 'endif'");
    if (skip_name("elif")) {
      condition = parse_tuple(false);
    } else {
      next();  // else
      condition = nullptr;
    }
  }
  return make_stmt(line, std::move(statement));
}

std::unique_ptr<Stmt> Parser::parse_for(int line) {
  ForStmt statement;
  next();
  statement.target = parse_target(false);
  if (!skip_name("in")) fail("expected token 'in', got " + describe(current()));
  statement.iterable = parse_tuple(false);
  if (skip_name("if")) statement.condition = parse_expression();
  if (current().is_name("recursive")) fail_unknown("loop modifier 'recursive'");
  end_block();
  ++num_open_loops_;
  statement.body = parse_body({"else", "endfor"});
  --num_open_loops_;
  if (skip_name("else")) {
    end_block();
    statement.otherwise = parse_body({"endfor"});
  }
  next();
  return make_stmt(line, std::move(statement));
}

std::unique_ptr<Stmt> Parser::parse_set(int line) {
  next();
  Target target = parse_target(true);
  if (skip_operator("=")) {
    return make_stmt(line, SetStmt{std::move(target), parse_tuple(true)});
  }
  ExprPtr filter;
  if (skip_operator("|")) filter = parse_filter_chain_head();
  end_block();
  Body body = parse_body({"endset"});
  next();
  return make_stmt(line, SetBlockStmt{std::move(target), std::move(filter), std::move(body)});
}

Target Parser::parse_single_target(bool allow_attribute) {
  if (skip_operator("(")) {
    const Nesting nesting(*this);
    Target target = parse_target(allow_attribute);
    expect_operator(")");
    return target;
  }
  Target target;
  target.name = expect_name();
  if (target.name == "true" || target.name == "false" || target.name == "none" ||
      target.name == "True" || target.name == "False" || target.name == "None") {
    fail("can't assign to '" + target.name + "'");
  }
  if (allow_attribute && skip_operator(".")) target.attribute = expect_name();
  return target;
}

Target Parser::parse_target(bool allow_attribute) {
  Target first = parse_single_target(allow_attribute);
  if (!current().is_operator(",")) return first;
  Target tuple;
  tuple.unpack.push_back(std::move(first));
  while (skip_operator(",")) {
    const bool more = current().is_operator("(") ||
                      (current().kind == TokenKind::kName && !current().is_name("in"));
    if (!more) break;
    tuple.unpack.push_back(parse_single_target(allow_attribute));
  }
  return tuple;
}

void Parser::parse_parameters(MacroDef& macro) {
  expect_operator("(");
  while (!skip_operator(")")) {
    if (!macro.parameters.empty()) expect_operator(",");
    Parameter parameter;
    parameter.name = expect_name();
    if (skip_operator("=")) {
      parameter.fallback = parse_expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().fallback) {
      fail("non-default argument follows default argument");
    }
    macro.parameters.push_back(std::move(parameter));
  }
}

void Parser::parse_macro_body(MacroDef& macro, std::string_view end_tag) {
  end_block();
  open_macros_.push_back(&macro);
  const int outer_loops = std::exchange(num_open_loops_, 0);
  macro.body = parse_body({end_tag});
  num_open_loops_ = outer_loops;
  open_macros_.pop_back();
  next();
}

std::unique_ptr<Stmt> Parser::parse_macro(int line) {
  MacroStmt statement;
  next();
  statement.macro.name = expect_name();
  parse_parameters(statement.macro);
  parse_macro_body(statement.macro, "endmacro");
  return make_stmt(line, std::move(statement));
}

std::unique_ptr<Stmt> Parser::parse_call_block(int line) {
  CallBlockStmt statement;
  next();
  statement.caller.name = "caller";
  if (current().is_operator("(")) parse_parameters(statement.caller);
  statement.call = parse_expression();
  if (!std::holds_alternative<CallExpr>(statement.call->node)) fail("expected call");
  parse_macro_body(statement.caller, "endcall");
  return make_stmt(line, std::move(statement));
}

std::unique_ptr<Stmt> Parser::parse_filter_block(int line) {
  next();
  FilterBlockStmt statement;
  statement.filter = parse_filter_chain_head();
  end_block();
  statement.body = parse_body({"endfilter"});
  next();
  return make_stmt(line, std::move(statement));
}

std::unique_ptr<Stmt> Parser::parse_with(int line) {
  next();
  WithStmt statement;
  while (current().kind != TokenKind::kBlockEnd) {
    if (!statement.assignments.empty()) expect_operator(",");
    Target target = parse_single_target(false);
    expect_operator("=");
    statement.assignments.emplace_back(std::move(target), parse_expression());
  }
  end_block();
  statement.body = parse_body({"endwith"});
  next();
  return make_stmt(line, std::move(statement));
}

std::unique_ptr<Stmt> Parser::parse_loop_control(int line, bool is_break) {
  if (num_open_loops_ == 0) fail("'" + current().value + "' outside of a loop");
  next();
  if (is_break) return make_stmt(line, BreakStmt{});
  return make_stmt(line, ContinueStmt{});
}

std::unique_ptr<Stmt> Parser::parse_scope(int line, std::string_view end_tag) {
  next();
  end_block();
  ScopeStmt statement;
  const int outer_loops = std::exchange(num_open_loops_, 0);
  statement.body = parse_body({end_tag});
  num_open_loops_ = outer_loops;
  next();
  return make_stmt(line, std::move(statement));
}

}  // namespace winnow::jinja
