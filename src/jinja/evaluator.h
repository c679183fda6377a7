// Evaluator: walks the syntax tree. Expressions yield values, statements append to the output.
#pragma once

#include <memory>

#include "jinja/ast.h"
#include "jinja/callable.h"
#include "jinja/runtime.h"
#include "jinja/scope.h"

namespace winnow::jinja {

class Evaluator {
 public:
  Evaluator(Runtime& runtime, std::shared_ptr<Scope> scope)
      : runtime_(runtime), scope_(std::move(scope)) {}

  // What a body left its loop with.
  enum class Flow { kNext, kBreak, kContinue };

  // Statements (executor.cc).
  Flow run(const Body& body, Text& out);

  // Expressions (evaluator.cc).
  Value evaluate(const Expr& expr);

 private:
  friend struct ExprVisitor;
  friend struct StmtVisitor;
  friend class Macro;

  Args evaluate_args(const CallArgs& args);
  // Applies a chain of filters that has no operand of its own to `input`.
  Value apply_chain(const Expr* chain, const Value& input);
  Value call_with(const CallExpr& call, const Value* caller);

  Flow run_statement(const Stmt& statement, Text& out);
  void run_loop(const ForStmt& loop, Text& out);
  std::vector<Value> loop_items(const ForStmt& loop);
  // Runs the body in a scope of its own and returns what it wrote.
  Text capture(const Body& body);
  void assign(const Target& target, const Value& value);
  Value make_macro(const MacroDef& definition);

  Runtime& runtime_;
  std::shared_ptr<Scope> scope_;
};

}  // namespace winnow::jinja
