#include "jinja/evaluator.h"

#include "jinja/attributes.h"
#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/predicates.h"
#include "jinja/stringify.h"

namespace winnow::jinja {

struct ExprVisitor {
  Evaluator& self;
  Runtime& runtime;

  Value operator()(const ConstExpr& e) const { return e.value; }

  Value operator()(const NameExpr& e) const {
    runtime.step(self.scope_->num_outer / 4);
    const Value* found = self.scope_->find(e.name);
    return found ? *found : Value::undefined("'" + e.name + "' is undefined");
  }

  Value operator()(const ListExpr& e) const {
    std::vector<Value> items;
    for (const ExprPtr& item : e.items) items.push_back(self.evaluate(*item));
    return make_list(std::move(items), e.kind);
  }

  Value operator()(const DictExpr& e) const {
    auto dict = std::make_shared<Dict>();
    for (const auto& [key, value] : e.entries) {
      Value k = self.evaluate(*key);
      runtime.step(k.text() ? 1 : dict->entries.size());
      dict->set(std::move(k), self.evaluate(*value));
    }
    return Value(std::shared_ptr<const Dict>(std::move(dict)));
  }

  Value operator()(const UnaryExpr& e) const {
    return unary(runtime, e.op, self.evaluate(*e.operand));
  }

  Value operator()(const BinaryExpr& e) const {
    const Value left = self.evaluate(*e.left);
    return binary(runtime, e.op, left, self.evaluate(*e.right));
  }

  Value operator()(const LogicExpr& e) const {
    Value left = self.evaluate(*e.left);
    return left.truthy() == e.is_and ? self.evaluate(*e.right) : left;
  }

  Value operator()(const CompareExpr& e) const {
    Value left = self.evaluate(*e.first);
    for (const auto& [op, operand] : e.rest) {
      Value right = self.evaluate(*operand);
      if (!compare_values(runtime, op, left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  Value operator()(const ConcatExpr& e) const {
    Text out;
    for (const ExprPtr& part : e.parts) {
      const Text text = to_text(runtime, self.evaluate(*part));
      runtime.create_bytes(text.size());
      out.append(text);
    }
    return Value(std::move(out));
  }

  Value operator()(const ConditionalExpr& e) const {
    if (self.evaluate(*e.condition).truthy()) return self.evaluate(*e.yes);
    if (e.no) return self.evaluate(*e.no);
    return Value::undefined(
        "the inline if-expression evaluated to false and no else section was defined");
  }

  Value operator()(const AttributeExpr& e) const {
    return get_attribute(runtime, self.evaluate(*e.object), e.name);
  }

  Value operator()(const ItemExpr& e) const {
    const Value object = self.evaluate(*e.object);
    return get_item(runtime, object, self.evaluate(*e.key));
  }

  Value operator()(const SliceExpr& e) const {
    const auto bound = [&](const ExprPtr& expr) {
      return expr ? self.evaluate(*expr) : Value(None{});
    };
    const Value object = self.evaluate(*e.object);
    const Value start = bound(e.start);
    const Value stop = bound(e.stop);
    return get_slice(runtime, object, start, stop, bound(e.step));
  }

  Value operator()(const CallExpr& e) const { return self.call_with(e, nullptr); }

  Value operator()(const FilterExpr& e) const {
    const Value operand = self.evaluate(*e.operand);
    return e.filter->apply(runtime, operand, self.evaluate_args(e.args));
  }

  Value operator()(const PredicateExpr& e) const {
    const Value operand = self.evaluate(*e.operand);
    return e.predicate->holds(runtime, operand, self.evaluate_args(e.args));
  }
};

Value Evaluator::evaluate(const Expr& expr) {
  const Runtime::Nesting nesting(runtime_);
  return std::visit(ExprVisitor{*this, runtime_}, expr.node);
}

Args Evaluator::evaluate_args(const CallArgs& args) {
  Args evaluated;
  for (const ExprPtr& value : args.positional) evaluated.positional.push_back(evaluate(*value));
  for (const auto& [name, value] : args.named) evaluated.named.emplace_back(name, evaluate(*value));
  if (args.spread) {
    for (Value& value : iterate(runtime_, evaluate(*args.spread)))
      evaluated.positional.push_back(std::move(value));
  }
  if (args.spread_named) {
    const Value named = evaluate(*args.spread_named);
    if (!named.dict())
      fail_render("argument after ** must be a mapping, not " + std::string(type_name(named)));
    for (const auto& [key, value] : named.dict()->entries) {
      if (!key.text()) fail_render("keywords must be strings");
      runtime_.step();
      evaluated.named.emplace_back(std::string(key.text()->view()), value);
    }
  }
  return evaluated;
}

Value Evaluator::call_with(const CallExpr& call, const Value* caller) {
  const Value callee = evaluate(*call.callee);
  require_defined(callee);
  Args args = evaluate_args(call.args);
  if (caller) args.named.emplace_back("caller", *caller);
  return runtime_.call(callee, std::move(args));
}

Value Evaluator::apply_chain(const Expr* chain, const Value& input) {
  if (!chain) return input;
  const Runtime::Nesting nesting(runtime_);
  const auto& filter = std::get<FilterExpr>(chain->node);
  const Value operand = apply_chain(filter.operand.get(), input);
  return filter.filter->apply(runtime_, operand, evaluate_args(filter.args));
}

}  // namespace winnow::jinja
