#include "jinja/ast.h"

#include <algorithm>

namespace winnow::jinja {
namespace {

int max_depth(const ExprPtr& expr) { return expr ? expr->depth : 0; }

template <class... Rest>
int max_depth(const ExprPtr& first, const Rest&... rest) {
  return std::max(max_depth(first), max_depth(rest...));
}

int max_depth(const std::vector<ExprPtr>& exprs) {
  int depth = 0;
  for (const ExprPtr& expr : exprs) depth = std::max(depth, max_depth(expr));
  return depth;
}

int max_depth(const CallArgs& args) {
  int depth = std::max(max_depth(args.positional), max_depth(args.spread, args.spread_named));
  for (const auto& [name, value] : args.named) depth = std::max(depth, max_depth(value));
  return depth;
}

struct OperandDepth {
  int operator()(const ConstExpr&) const { return 0; }
  int operator()(const NameExpr&) const { return 0; }
  int operator()(const ListExpr& e) const { return max_depth(e.items); }
  int operator()(const DictExpr& e) const {
    int depth = 0;
    for (const auto& [key, value] : e.entries) depth = std::max(depth, max_depth(key, value));
    return depth;
  }
  int operator()(const UnaryExpr& e) const { return max_depth(e.operand); }
  int operator()(const BinaryExpr& e) const { return max_depth(e.left, e.right); }
  int operator()(const LogicExpr& e) const { return max_depth(e.left, e.right); }
  int operator()(const CompareExpr& e) const {
    int depth = max_depth(e.first);
    for (const auto& [op, operand] : e.rest) depth = std::max(depth, max_depth(operand));
    return depth;
  }
  int operator()(const ConcatExpr& e) const { return max_depth(e.parts); }
  int operator()(const ConditionalExpr& e) const { return max_depth(e.condition, e.yes, e.no); }
  int operator()(const AttributeExpr& e) const { return max_depth(e.object); }
  int operator()(const ItemExpr& e) const { return max_depth(e.object, e.key); }
  int operator()(const SliceExpr& e) const { return max_depth(e.object, e.start, e.stop, e.step); }
  int operator()(const CallExpr& e) const {
    return std::max(max_depth(e.callee), max_depth(e.args));
  }
  int operator()(const FilterExpr& e) const {
    return std::max(max_depth(e.operand), max_depth(e.args));
  }
  int operator()(const PredicateExpr& e) const {
    return std::max(max_depth(e.operand), max_depth(e.args));
  }
};

}  // namespace

int operand_depth(const Expr& expr) { return std::visit(OperandDepth{}, expr.node); }

}  // namespace winnow::jinja
