// Python's str() and repr() of values.
#pragma once

#include <string>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

std::string int_to_string(Int number);
// Python's repr of a float: the shortest digits that read back the same, "1.0", "1e+16", "nan".
std::string float_to_string(double number);

// str(value); text stays what it is, with its origins. The notes tell of None and containers
// printed.
Text to_text(Runtime& runtime, const Value& value);
// repr(value) as bytes.
std::string repr(Runtime& runtime, const Value& value);

}  // namespace winnow::jinja
