// The functions every template finds: range, dict, namespace, raise_exception, strftime_now,
// joiner.
#pragma once

#include "jinja/scope.h"

namespace winnow::jinja {

void add_globals(Scope& scope);

}  // namespace winnow::jinja
