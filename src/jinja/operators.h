// Python's operators on values.
#pragma once

#include <string_view>
#include <vector>

#include "jinja/ast.h"
#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

Value binary(Runtime& runtime, BinaryOp op, const Value& left, const Value& right);
Value unary(Runtime& runtime, UnaryOp op, const Value& operand);
bool compare_values(Runtime& runtime, CompareOp op, const Value& left, const Value& right);
// left in right.
bool contains(Runtime& runtime, const Value& left, const Value& right);

// Fails with the reason if `value` is undefined.
void require_defined(const Value& value);
// The elements of anything that Python can iterate over: lists, texts (characters), dicts (keys),
// undefined (none). A generator is used up by this.
std::vector<Value> iterate(Runtime& runtime, const Value& value);

}  // namespace winnow::jinja
