// What may follow `is` ("defined", "mapping", "equalto", ...): Jinja's tests.
#pragma once

#include <string_view>

#include "jinja/callable.h"
#include "jinja/runtime.h"

namespace winnow::jinja {

struct Predicate {
  std::string_view name;
  bool (*holds)(Runtime& runtime, const Value& subject, const Args& args);
};

// Null if there is no such test.
const Predicate* find_predicate(std::string_view name);

}  // namespace winnow::jinja
