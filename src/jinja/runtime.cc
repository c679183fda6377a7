#include "jinja/runtime.h"

#include <algorithm>

#include "jinja/callable.h"
#include "jinja/errors.h"
#include "jinja/scope.h"

namespace winnow::jinja {

namespace {

// What a text takes besides its bytes.
constexpr size_t kTextBytes = 128;

}  // namespace

Runtime::~Runtime() {
  for (const auto& space : namespaces_) space->attributes = Dict();
  for (const auto& scope : scopes_) {
    scope->variables.clear();
  }
}

void Runtime::step(size_t count) {
  steps_ += static_cast<int64_t>(count < (size_t{1} << 40) ? count : (size_t{1} << 40));
  if (steps_ > limits_.max_steps) {
    fail_render("the template takes more than " + std::to_string(limits_.max_steps) + " steps");
  }
}

Limits Limits::with_data(size_t weight) const {
  constexpr size_t kMostWeight = size_t{1} << 40;  // far beyond any memory; keeps the sums in range
  const size_t counted = std::min(weight, kMostWeight);
  // A unit of weight is a node or 32 bytes of text.
  Limits limits = *this;
  limits.max_steps += static_cast<int64_t>(64 * counted);
  limits.max_output_bytes += 4 * 32 * counted;
  limits.max_created_bytes += 16 * 32 * counted;
  return limits;
}

void Runtime::require_room(size_t count) const {
  if (count > limits_.max_created_bytes - created_bytes_) {
    fail_render("the template builds more than " + std::to_string(limits_.max_created_bytes) +
                " bytes of text");
  }
}

void Runtime::create_bytes(size_t count) {
  require_room(count);
  created_bytes_ += count;
  step(count / 64);
}

void Runtime::check_output(size_t size) const {
  if (size > limits_.max_output_bytes) {
    fail_render("the template writes more than " + std::to_string(limits_.max_output_bytes) +
                " bytes");
  }
}

Runtime::Nesting::Nesting(Runtime& runtime) : runtime_(runtime) {
  runtime.step();
  if (runtime.depth_ >= runtime.limits_.max_depth) {
    fail_render("the template is nested more than " + std::to_string(runtime.limits_.max_depth) +
                " deep (a macro that calls itself?)");
  }
  ++runtime.depth_;
}

Value Runtime::make_text(Text text) {
  create_bytes(text.size() + kTextBytes);
  return Value(std::move(text));
}

Value Runtime::call(const Value& callee, Args args) {
  if (callee.is_undefined()) fail_render(*callee.as_undefined().reason);
  const Callable* callable = callee.callable();
  if (!callable) fail_render("'" + std::string(type_name(callee)) + "' object is not callable");
  const Nesting nesting(*this);
  return callable->call(*this, std::move(args));
}

Value Runtime::make_namespace(Dict attributes) {
  namespaces_.push_back(std::make_shared<Namespace>(Namespace{std::move(attributes)}));
  return Value(namespaces_.back());
}

void Runtime::keep(std::shared_ptr<Scope> scope) { scopes_.push_back(std::move(scope)); }

}  // namespace winnow::jinja
