#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "jinja/attributes.h"
#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/text_ops.h"

namespace winnow::jinja {
namespace {

Value default_filter(Runtime&, const Value& self, const Args& args) {
  ArgReader reader("default", args);
  const Value* fallback = reader.optional("default_value");
  const bool also_false = reader.truth_or("boolean", false);
  reader.finish();
  if (!self.is_undefined() && !(also_false && !self.truthy())) return self;
  return fallback ? *fallback : Value(Text());
}

std::string trimmed(const Value& self) {
  std::string digits(strip(*self.text(), nullptr, Side::kBoth).view());
  std::erase(digits, '_');
  if (!digits.empty() && digits[0] == '+') digits.erase(0, 1);
  return digits;
}

// The base that a prefix stands for; 0 for none.
int prefix_base(std::string_view digits) {
  if (digits.size() < 2 || digits[0] != '0') return 0;
  switch (digits[1]) {
    case 'x':
    case 'X':
      return 16;
    case 'o':
    case 'O':
      return 8;
    case 'b':
    case 'B':
      return 2;
    default:
      return 0;
  }
}

// As Python's int(): a prefix may stand before digits of its own base, and tells it where base is
// 0.
std::optional<Int> parse_int(std::string_view digits, int base) {
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  const int prefixed = prefix_base(digits);
  if (prefixed != 0 && (base == prefixed || base == 0)) {
    digits.remove_prefix(2);
    base = prefixed;
  }
  uint64_t number = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, number, base == 0 ? 10 : base);
  if (digits.empty() || read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return negative ? -Int{number} : Int{number};
}

std::optional<double> parse_float(const std::string& digits) {
  double number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (digits.empty() || read.ec != std::errc() || read.ptr != digits.data() + digits.size())
    return std::nullopt;
  return number;
}

std::optional<Int> truncate(double number) {
  if (!(std::abs(number) < 9e18)) return std::nullopt;
  return Int{static_cast<int64_t>(number)};
}

Origin origin_of(const Value& value) {
  return value.text() ? value.text()->origin() : value.origin();
}

Value int_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("int", args);
  const Value* fallback = reader.optional("default");
  const Int base = reader.integer_or("base", 10);
  reader.finish();
  std::optional<Int> number = self.integer();
  if (self.text()) {
    if (base != 0 && (base < 2 || base > 36)) fail_render("int() base must be from 2 to 36, or 0");
    runtime.read_bytes(self.text()->size());
    const std::string digits = trimmed(self);
    number = parse_int(digits, static_cast<int>(base));
    if (!number) {
      if (const auto real = parse_float(digits)) number = truncate(*real);
    }
  } else if (self.is_float()) {
    number = truncate(*self.real());
  }
  if (number) return Value(*number).with_origin(origin_of(self));
  return fallback ? *fallback : Value::number(0);
}

Value float_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("float", args);
  const Value* fallback = reader.optional("default");
  reader.finish();
  std::optional<double> number = self.real();
  if (self.text()) {
    runtime.read_bytes(self.text()->size());
    number = parse_float(trimmed(self));
  }
  if (number) return Value(*number).with_origin(origin_of(self));
  return fallback ? *fallback : Value(0.0);
}

Value abs_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("abs", args).finish();
  require_defined(self);
  if (!self.is_number())
    fail_render("bad operand type for abs(): '" + std::string(type_name(self)) + "'");
  if (self.is_float()) return Value(std::abs(*self.real())).with_origin(self.origin());
  return *self.integer() < 0 ? unary(runtime, UnaryOp::kNegate, self) : self;
}

// To a multiple of 10^zeros, halves to the even one.
Int round_to_zeros(Int number, int zeros) {
  if (zeros > 30) return 0;  // no integer of a template is that long
  Int unit = 1;
  for (int i = 0; i < zeros; ++i) unit *= 10;
  const Int rest = (number % unit + unit) % unit;
  const Int below = number - rest;
  const bool up = 2 * rest > unit || (2 * rest == unit && below / unit % 2 != 0);
  return up ? below + unit : below;
}

double round_to(double number, int precision) {
  if (precision < 0) {
    const double unit = std::pow(10.0, -precision);
    return std::nearbyint(number / unit) * unit;
  }
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.*f", precision, number);
  return std::strtod(buffer, nullptr);
}

Value round_filter(Runtime&, const Value& self, const Args& args) {
  ArgReader reader("round", args);
  const Int precision = reader.integer_or("precision", 0);
  const Text* method = reader.text_or_null("method");
  reader.finish();
  require_defined(self);
  const std::string_view how = method ? method->view() : "common";
  if (how != "common" && how != "ceil" && how != "floor")
    fail_render("method must be common, ceil or floor");
  if (precision < -20 || precision > 20) fail_render("round() precision must be from -20 to 20");
  const auto number = self.real();
  if (!number)
    fail_render("type " + std::string(type_name(self)) + " doesn't define __round__ method");
  if (how == "common") {
    if (self.integer()) {
      const int zeros = static_cast<int>(std::max(-precision, Int{0}));
      return Value(round_to_zeros(*self.integer(), zeros)).with_origin(self.origin());
    }
    return Value(round_to(*number, static_cast<int>(precision))).with_origin(self.origin());
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = *number * scale;
  return Value((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale)
      .with_origin(self.origin());
}

Value attr_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("attr", args);
  const Text* name = reader.text_or_null("name");
  reader.finish();
  if (!name) fail_render("attr() needs the name of an attribute");
  // Unlike the dot, this filter never looks at the items of a dict.
  if (self.dict())
    return Value::undefined("'dict object' has no attribute '" + std::string(name->view()) + "'");
  return get_attribute(runtime, self, name->view());
}

}  // namespace

const Filter* find_scalar_filter(std::string_view name) {
  static constexpr Filter kFilters[] = {
      {"default", default_filter}, {"d", default_filter}, {"int", int_filter},
      {"float", float_filter},     {"abs", abs_filter},   {"round", round_filter},
      {"attr", attr_filter},
  };
  return find_filter_in(kFilters, name);
}

}  // namespace winnow::jinja
