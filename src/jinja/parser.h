// From tokens to the syntax tree.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace winnow::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // The whole template. Fails with the line and the construct that is wrong or unknown.
  Body parse_template();

 private:
  // Statements (parser.cc).
  Body parse_body(std::initializer_list<std::string_view> end_tags);
  std::unique_ptr<Stmt> parse_statement();
  std::unique_ptr<Stmt> parse_if(int line);
  std::unique_ptr<Stmt> parse_for(int line);
  std::unique_ptr<Stmt> parse_set(int line);
  std::unique_ptr<Stmt> parse_macro(int line);
  std::unique_ptr<Stmt> parse_call_block(int line);
  std::unique_ptr<Stmt> parse_filter_block(int line);
  std::unique_ptr<Stmt> parse_with(int line);
  std::unique_ptr<Stmt> parse_loop_control(int line, bool is_break);
  std::unique_ptr<Stmt> parse_scope(int line, std::string_view end_tag);
  void parse_parameters(MacroDef& macro);
  void parse_macro_body(MacroDef& macro, std::string_view end_tag);
  Target parse_target(bool allow_attribute);
  Target parse_single_target(bool allow_attribute);
  // Skips to after `%}` of the tag that ended a body.
  void end_block();

  // Expressions (expression_parser.cc).
  ExprPtr parse_tuple(bool with_conditional);
  ExprPtr parse_expression(bool with_conditional = true);
  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_comparison();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filters);
  ExprPtr parse_primary();
  ExprPtr parse_name();
  ExprPtr parse_number();
  ExprPtr parse_parenthesized();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr operand);
  ExprPtr parse_filters_and_tests(ExprPtr operand);
  ExprPtr parse_attribute(ExprPtr operand);
  ExprPtr parse_subscript(ExprPtr operand);
  ExprPtr parse_call(ExprPtr callee);
  ExprPtr parse_filter(ExprPtr operand);
  ExprPtr parse_filter_chain_head();
  ExprPtr parse_predicate(ExprPtr operand);
  CallArgs parse_call_args();
  bool at_tuple_end() const;

  // Token stream.
  const Token& current() const { return tokens_[at_]; }
  const Token& peek() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  Token next();
  bool skip_name(std::string_view name);
  bool skip_operator(std::string_view op);
  void expect_operator(std::string_view op);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_unknown(const std::string& construct) const;

  template <class Node>
  ExprPtr make_expr(int line, Node node) {
    return checked(std::make_unique<Expr>(Expr{line, std::move(node)}));
  }
  template <class Node>
  std::unique_ptr<Stmt> make_stmt(int line, Node node) {
    return std::make_unique<Stmt>(Stmt{line, std::move(node)});
  }

  // One more construct inside another while it lives: the tree, and so every walk over it, stays
  // shallow.
  class Nesting {
   public:
    explicit Nesting(Parser& parser);
    ~Nesting() { --parser_.depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser& parser_;
  };
  // Fills in the depth; fails if it is too large to walk.
  ExprPtr checked(ExprPtr expr) const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int num_open_loops_ = 0;
  std::vector<MacroDef*> open_macros_;
};

}  // namespace winnow::jinja
