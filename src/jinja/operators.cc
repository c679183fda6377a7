#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/errors.h"
#include "jinja/percent_format.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

std::string_view symbol(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kFloorDiv:
      return "//";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kPow:
      return "** or pow()";
  }
  return "?";
}

[[noreturn]] void fail_types(BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::kAdd && (left.text() || left.list())) {
    const std::string type(type_name(left));
    fail_render("can only concatenate " + type + " (not \"" + std::string(type_name(right)) +
                "\") to " + type);
  }
  fail_render("unsupported operand type(s) for " + std::string(symbol(op)) + ": '" +
              std::string(type_name(left)) + "' and '" + std::string(type_name(right)) + "'");
}

Int fit(bool overflow, Int number) {
  // The bound keeps every product of two numbers inside 128 bits.
  constexpr Int kLimit = Int{1} << 100;
  if (overflow || number > kLimit || number < -kLimit) fail_render("integer overflow");
  return number;
}

Int floor_div(Int a, Int b) {
  const Int quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

Int power(Int base, Int exponent) {
  Int result = 1;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  if (exponent > 100) fail_render("integer overflow");
  for (Int i = 0; i < exponent; ++i) {
    Int product = 0;
    const bool overflow = __builtin_mul_overflow(result, base, &product);
    result = fit(overflow, product);
  }
  return result;
}

Value integer_op(BinaryOp op, Int a, Int b) {
  Int result = 0;
  bool overflow = false;
  switch (op) {
    case BinaryOp::kAdd:
      overflow = __builtin_add_overflow(a, b, &result);
      return fit(overflow, result);
    case BinaryOp::kSub:
      overflow = __builtin_sub_overflow(a, b, &result);
      return fit(overflow, result);
    case BinaryOp::kMul:
      overflow = __builtin_mul_overflow(a, b, &result);
      return fit(overflow, result);
    case BinaryOp::kPow:
      if (b < 0) return std::pow(static_cast<double>(a), static_cast<double>(b));
      return power(a, b);
    default:
      break;
  }
  if (b == 0)
    fail_render(op == BinaryOp::kDiv ? "division by zero" : "integer division or modulo by zero");
  if (op == BinaryOp::kDiv) return static_cast<double>(a) / static_cast<double>(b);
  if (op == BinaryOp::kFloorDiv) return floor_div(a, b);
  return a - floor_div(a, b) * b;
}

Value float_op(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kPow:
      return std::pow(a, b);
    default:
      break;
  }
  if (b == 0) fail_render("float division by zero");
  if (op == BinaryOp::kDiv) return a / b;
  if (op == BinaryOp::kFloorDiv) return std::floor(a / b);
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value repeat(Runtime& runtime, const Value& sequence, Int times) {
  // No budget allows as many as the upper bound, which keeps the products below in range.
  times = std::clamp(times, Int{0}, Int{1} << 32);
  const auto count = static_cast<size_t>(times);
  if (const Text* text = sequence.text()) {
    Text out;
    if (!text->empty()) {
      runtime.create_bytes(text->size() * count);
      runtime.step(count);
      for (size_t i = 0; i < count; ++i) out.append(*text);
    }
    return Value(std::move(out));
  }
  std::vector<Value> items;
  const List& list = *sequence.list();
  if (list.items.empty()) return make_list({}, list.kind);
  runtime.step(list.items.size() * count);
  items.reserve(list.items.size() * count);
  for (size_t i = 0; i < count; ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_list(std::move(items), list.kind);
}

bool is_plain_sequence(const Value& value) {
  const List* list = value.list();
  return list && (list->kind == ListKind::kList || list->kind == ListKind::kTuple);
}

Value add_sequences(Runtime& runtime, const List& left, const List& right) {
  runtime.step(left.items.size() + right.items.size());
  std::vector<Value> items;
  items.reserve(left.items.size() + right.items.size());
  items.insert(items.end(), left.items.begin(), left.items.end());
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_list(std::move(items), left.kind);
}

Origin joint_origin(const Value& a, const Value& b) {
  return a.origin() == Origin::kData || b.origin() == Origin::kData ? Origin::kData
                                                                    : Origin::kTemplate;
}

}  // namespace

void require_defined(const Value& value) {
  if (value.is_undefined()) fail_render(*value.as_undefined().reason);
}

Value binary(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  require_defined(left);
  if (op == BinaryOp::kMod && left.text()) {
    return runtime.make_text(percent_format(runtime, *left.text(), right));
  }
  require_defined(right);
  if (left.integer() && right.integer()) {
    return integer_op(op, *left.integer(), *right.integer()).with_origin(joint_origin(left, right));
  }
  if (left.real() && right.real()) {
    return float_op(op, *left.real(), *right.real()).with_origin(joint_origin(left, right));
  }
  if (op == BinaryOp::kAdd && left.text() && right.text()) {
    runtime.require_room(left.text()->size() + right.text()->size());
    Text sum = *left.text();
    sum.append(*right.text());
    return runtime.make_text(std::move(sum));
  }
  if (op == BinaryOp::kAdd && is_plain_sequence(left) && is_plain_sequence(right) &&
      left.list()->kind == right.list()->kind) {
    return add_sequences(runtime, *left.list(), *right.list());
  }
  if (op == BinaryOp::kMul) {
    if ((left.text() || is_plain_sequence(left)) && right.integer())
      return repeat(runtime, left, *right.integer());
    if ((right.text() || is_plain_sequence(right)) && left.integer())
      return repeat(runtime, right, *left.integer());
  }
  fail_types(op, left, right);
}

Value unary(Runtime& runtime, UnaryOp op, const Value& operand) {
  if (op == UnaryOp::kNot) return !operand.truthy();
  require_defined(operand);
  if (op == UnaryOp::kPlus && operand.is_number()) return operand;
  if (operand.integer()) return binary(runtime, BinaryOp::kSub, Value::number(0), operand);
  if (operand.is_float() && op == UnaryOp::kNegate)
    return Value(-*operand.real()).with_origin(operand.origin());
  fail_render("bad operand type for unary " + std::string(op == UnaryOp::kPlus ? "+" : "-") +
              ": '" + std::string(type_name(operand)) + "'");
}

bool contains(Runtime& runtime, const Value& left, const Value& right) {
  if (right.is_undefined()) {
    if (right.as_undefined().forbidden) require_defined(right);
    return false;
  }
  if (const Text* text = right.text()) {
    require_defined(left);
    if (!left.text()) {
      fail_render("'in <string>' requires string as left operand, not " +
                  std::string(type_name(left)));
    }
    runtime.read_bytes(text->size());
    return find_bytes(text->view(), left.text()->view()) != std::string_view::npos;
  }
  if (const Dict* dict = right.dict()) {
    runtime.step(left.text() ? 1 : dict->entries.size());
    return dict->find(left) != nullptr;
  }
  if (!right.list())
    fail_render("argument of type '" + std::string(type_name(right)) + "' is not iterable");
  for (const Value& item : right.list()->items) {
    runtime.step(std::min(item.weight(), left.weight()));
    if (equal(item, left)) return true;
  }
  return false;
}

bool compare_values(Runtime& runtime, CompareOp op, const Value& left, const Value& right) {
  runtime.step(std::min(left.weight(), right.weight()));
  switch (op) {
    case CompareOp::kEq:
      return equal(left, right);
    case CompareOp::kNe:
      return !equal(left, right);
    case CompareOp::kIn:
      return contains(runtime, left, right);
    case CompareOp::kNotIn:
      return !contains(runtime, left, right);
    default:
      break;
  }
  require_defined(left);
  require_defined(right);
  const auto is_nan = [](const Value& v) { return v.is_float() && std::isnan(*v.real()); };
  if (left.is_number() && right.is_number() && (is_nan(left) || is_nan(right))) return false;
  switch (op) {
    case CompareOp::kLt:
      return compare(left, right, "<") < 0;
    case CompareOp::kLe:
      return compare(left, right, "<=") <= 0;
    case CompareOp::kGt:
      return compare(left, right, ">") > 0;
    default:
      return compare(left, right, ">=") >= 0;
  }
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  std::vector<Value> items;
  if (value.is_undefined()) {
    if (value.as_undefined().forbidden) require_defined(value);
    return items;
  }
  if (const auto* list = value.list_ptr()) {
    runtime.step((*list)->items.size());
    if ((*list)->kind == ListKind::kGenerator) return std::exchange((*list)->items, {});
    return (*list)->items;
  }
  if (const Dict* dict = value.dict()) {
    runtime.step(dict->entries.size());
    for (const auto& entry : dict->entries) items.push_back(entry.first);
    return items;
  }
  if (const Text* text = value.text()) {
    runtime.step(text->size());
    for (size_t at = 0; at < text->size();) {
      const size_t end = at + utf8_at(text->view(), at).num_bytes;
      items.push_back(runtime.make_text(text->slice(at, end)));
      at = end;
    }
    return items;
  }
  fail_render("'" + std::string(type_name(value)) + "' object is not iterable");
}

}  // namespace winnow::jinja
