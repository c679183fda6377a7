// Scope: the variables of one block; reads go outwards, writes stay inside.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace winnow::jinja {

struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;  // names live in the syntax tree
  size_t num_outer = 0;                                       // scopes around this one

  explicit Scope(std::shared_ptr<Scope> outer) : parent(std::move(outer)) {
    if (parent) num_outer = parent->num_outer + 1;
  }

  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope; scope = scope->parent.get()) {
      for (const auto& [known, value] : scope->variables) {
        if (known == name) return &value;
      }
    }
    return nullptr;
  }

  void set(std::string_view name, Value value) {
    for (auto& [known, old] : variables) {
      if (known == name) {
        old = std::move(value);
        return;
      }
    }
    variables.emplace_back(name, std::move(value));
  }
};

}  // namespace winnow::jinja
