#include "jinja/errors.h"
#include "jinja/evaluator.h"
#include "jinja/operators.h"
#include "jinja/stringify.h"

namespace winnow::jinja {
namespace {

// Enters a new innermost scope and returns to the old one at its end.
class ScopeGuard {
 public:
  ScopeGuard(std::shared_ptr<Scope>& current, std::shared_ptr<Scope> inner)
      : current_(current), outer_(current) {
    current_ = std::move(inner);
  }
  ~ScopeGuard() { current_ = outer_; }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  std::shared_ptr<Scope>& current_;
  std::shared_ptr<Scope> outer_;
};

// A template may keep `loop` beyond the loop; what the loop refers to must not live on in it.
class LoopGuard {
 public:
  explicit LoopGuard(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}
  ~LoopGuard() {
    loop_->finished = true;
    loop_->items.clear();
    loop_->last_changed.reset();
  }
  LoopGuard(const LoopGuard&) = delete;
  LoopGuard& operator=(const LoopGuard&) = delete;

 private:
  std::shared_ptr<Loop> loop_;
};

}  // namespace

class Macro : public Callable {
 public:
  Macro(const MacroDef& definition, std::shared_ptr<Scope> scope)
      : definition_(definition), scope_(std::move(scope)) {}

  Value call(Runtime& runtime, Args args) const override {
    auto inner = std::make_shared<Scope>(scope_);
    Evaluator evaluator(runtime, inner);
    bind(runtime, evaluator, *inner, std::move(args));
    Text out;
    evaluator.run(definition_.body, out);
    return Value(std::move(out));
  }
  std::string_view name() const override { return definition_.name; }

 private:
  void bind(Runtime& runtime, Evaluator& evaluator, Scope& inner, Args args) const;
  void bind_rest(Runtime& runtime, Scope& inner, Args& args, std::vector<bool>& used) const;

  const MacroDef& definition_;
  std::shared_ptr<Scope> scope_;
};

void Macro::bind(Runtime& runtime, Evaluator& evaluator, Scope& inner, Args args) const {
  std::vector<bool> used(args.named.size(), false);
  for (size_t i = 0; i < definition_.parameters.size(); ++i) {
    runtime.step();
    const Parameter& parameter = definition_.parameters[i];
    const Value* given = i < args.positional.size() ? &args.positional[i] : nullptr;
    for (size_t n = 0; n < args.named.size(); ++n) {
      if (args.named[n].first != parameter.name) continue;
      if (given) {
        fail_render("macro '" + definition_.name + "' got multiple values for argument '" +
                    parameter.name + "'");
      }
      used[n] = true;
      given = &args.named[n].second;
    }
    if (given) {
      inner.set(parameter.name, *given);
    } else if (parameter.fallback) {
      inner.set(parameter.name, evaluator.evaluate(*parameter.fallback));
    } else {
      inner.set(parameter.name,
                Value::undefined("parameter '" + parameter.name + "' was not provided"));
    }
  }
  bind_rest(runtime, inner, args, used);
}

void Macro::bind_rest(Runtime& runtime, Scope& inner, Args& args, std::vector<bool>& used) const {
  if (definition_.uses_caller) {
    Value caller = Value::undefined("No caller defined");
    for (size_t n = 0; n < args.named.size(); ++n) {
      if (args.named[n].first != "caller" || used[n]) continue;
      used[n] = true;
      caller = args.named[n].second;
    }
    inner.set("caller", std::move(caller));
  }
  const size_t num_parameters = definition_.parameters.size();
  if (definition_.uses_varargs) {
    std::vector<Value> rest;
    for (size_t i = num_parameters; i < args.positional.size(); ++i)
      rest.push_back(args.positional[i]);
    inner.set("varargs", make_list(std::move(rest), ListKind::kTuple));
  } else if (args.positional.size() > num_parameters) {
    fail_render("macro '" + definition_.name + "' takes not more than " +
                std::to_string(num_parameters) + " argument(s)");
  }
  auto kwargs = std::make_shared<Dict>();
  for (size_t n = 0; n < args.named.size(); ++n) {
    runtime.step();
    if (used[n]) continue;
    if (!definition_.uses_kwargs) {
      fail_render("macro '" + definition_.name + "' takes no keyword argument '" +
                  args.named[n].first + "'");
    }
    kwargs->set(Value::template_text(args.named[n].first), args.named[n].second);
  }
  if (definition_.uses_kwargs)
    inner.set("kwargs", Value(std::shared_ptr<const Dict>(std::move(kwargs))));
}

struct StmtVisitor {
  using Flow = Evaluator::Flow;
  Evaluator& self;
  Runtime& runtime;
  Text& out;

  void write(const Text& text) const {
    runtime.check_output(out.size() + text.size());
    runtime.create_bytes(text.size());
    out.append(text);
  }

  Flow operator()(const TextStmt& s) const {
    write(s.text);
    return Flow::kNext;
  }

  Flow operator()(const OutputStmt& s) const {
    const Value value = self.evaluate(*s.value);
    if (const Text* text = value.text()) {
      write(*text);
    } else {
      write(to_text(runtime, value));
    }
    return Flow::kNext;
  }

  Flow operator()(const IfStmt& s) const {
    for (const auto& [condition, body] : s.branches) {
      if (!condition || self.evaluate(*condition).truthy()) return self.run(body, out);
    }
    return Flow::kNext;
  }

  Flow operator()(const ForStmt& s) const {
    self.run_loop(s, out);
    return Flow::kNext;
  }

  Flow operator()(const SetStmt& s) const {
    self.assign(s.target, self.evaluate(*s.value));
    return Flow::kNext;
  }

  Flow operator()(const SetBlockStmt& s) const {
    self.assign(s.target, self.apply_chain(s.filter.get(), Value(self.capture(s.body))));
    return Flow::kNext;
  }

  Flow operator()(const MacroStmt& s) const {
    self.scope_->set(s.macro.name, self.make_macro(s.macro));
    return Flow::kNext;
  }

  Flow operator()(const CallBlockStmt& s) const {
    const Value caller = self.make_macro(s.caller);
    write(to_text(runtime, self.call_with(std::get<CallExpr>(s.call->node), &caller)));
    return Flow::kNext;
  }

  Flow operator()(const FilterBlockStmt& s) const {
    write(to_text(runtime, self.apply_chain(s.filter.get(), Value(self.capture(s.body)))));
    return Flow::kNext;
  }

  Flow operator()(const WithStmt& s) const {
    auto inner = std::make_shared<Scope>(self.scope_);
    for (const auto& [target, value] : s.assignments) {
      Value evaluated = self.evaluate(*value);
      const ScopeGuard guard(self.scope_, inner);
      self.assign(target, evaluated);
    }
    const ScopeGuard guard(self.scope_, inner);
    return self.run(s.body, out);
  }

  Flow operator()(const ScopeStmt& s) const {
    const ScopeGuard guard(self.scope_, std::make_shared<Scope>(self.scope_));
    return self.run(s.body, out);
  }

  Flow operator()(const BreakStmt&) const { return Flow::kBreak; }
  Flow operator()(const ContinueStmt&) const { return Flow::kContinue; }
};

Evaluator::Flow Evaluator::run(const Body& body, Text& out) {
  const Runtime::Nesting nesting(runtime_);
  for (const auto& statement : body) {
    const Flow flow = run_statement(*statement, out);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_statement(const Stmt& statement, Text& out) {
  try {
    runtime_.step();
    return std::visit(StmtVisitor{*this, runtime_, out}, statement.node);
  } catch (TemplateError& error) {
    if (error.line == 0) error.line = statement.line;
    throw;
  }
}

std::vector<Value> Evaluator::loop_items(const ForStmt& loop) {
  std::vector<Value> items = iterate(runtime_, evaluate(*loop.iterable));
  if (!loop.condition) return items;
  std::vector<Value> kept;
  for (Value& item : items) {
    const ScopeGuard guard(scope_, std::make_shared<Scope>(scope_));
    assign(loop.target, item);
    if (evaluate(*loop.condition).truthy()) kept.push_back(std::move(item));
  }
  return kept;
}

void Evaluator::run_loop(const ForStmt& loop, Text& out) {
  std::vector<Value> items = loop_items(loop);
  if (items.empty()) {
    const ScopeGuard guard(scope_, std::make_shared<Scope>(scope_));
    run(loop.otherwise, out);
    return;
  }
  auto state = std::make_shared<Loop>();
  state->length = items.size();
  for (const Value& item : items)
    state->value_depth = std::max(state->value_depth, item.depth() + 1);
  state->items = std::move(items);
  const LoopGuard guard(state);
  for (size_t i = 0; i < state->length; ++i) {
    const ScopeGuard scope(scope_, std::make_shared<Scope>(scope_));
    state->index0 = i;
    scope_->set("loop", Value(state));
    assign(loop.target, state->items[i]);
    if (run(loop.body, out) == Flow::kBreak) break;
  }
}

Text Evaluator::capture(const Body& body) {
  const ScopeGuard guard(scope_, std::make_shared<Scope>(scope_));
  Text out;
  run(body, out);
  return out;
}

void Evaluator::assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    const Value* holder = scope_->find(target.name);
    if (!holder) fail_render("'" + target.name + "' is undefined");
    if (!holder->space()) fail_render("cannot assign attribute on non-namespace object");
    if (target.attribute.starts_with("_")) {
      fail_render(
          "templates cannot store underscore-prefixed attributes on a namespace, but got '" +
          target.attribute + "'");
    }
    holder->space()->attributes.set(Value::template_text(target.attribute), value);
    return;
  }
  if (target.unpack.empty()) {
    scope_->set(target.name, value);
    return;
  }
  require_defined(value);
  const std::vector<Value> parts = iterate(runtime_, value);
  if (parts.size() != target.unpack.size()) {
    fail_render((parts.size() < target.unpack.size() ? "not enough values to unpack (expected "
                                                     : "too many values to unpack (expected ") +
                std::to_string(target.unpack.size()) + ", got " + std::to_string(parts.size()) +
                ")");
  }
  for (size_t i = 0; i < parts.size(); ++i) assign(target.unpack[i], parts[i]);
}

Value Evaluator::make_macro(const MacroDef& definition) {
  runtime_.keep(scope_);
  return Value(std::shared_ptr<const Callable>(std::make_shared<Macro>(definition, scope_)));
}

}  // namespace winnow::jinja
