#include "jinja/predicates.h"

#include <algorithm>

#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/methods.h"
#include "jinja/operators.h"
#include "jinja/text_ops.h"

namespace winnow::jinja {
namespace {

using Check = bool (*)(const Value&);

template <Check kCheck>
bool plain(Runtime&, const Value& subject, const Args& args) {
  ArgReader("test", args).finish();
  return kCheck(subject);
}

bool is_defined(const Value& v) { return !v.is_undefined(); }
bool is_undefined(const Value& v) { return v.is_undefined(); }
bool is_none(const Value& v) { return v.is_none(); }
bool is_string(const Value& v) { return v.text() != nullptr; }
bool is_mapping(const Value& v) { return v.dict() != nullptr; }
bool is_number(const Value& v) { return v.is_number(); }
bool is_integer(const Value& v) { return v.is_int(); }
bool is_float(const Value& v) { return v.is_float(); }
bool is_boolean(const Value& v) { return v.is_bool(); }
bool is_true(const Value& v) { return v.is_bool() && v.truthy(); }
bool is_false(const Value& v) { return v.is_bool() && !v.truthy(); }
bool is_callable(const Value& v) { return v.callable() != nullptr; }
bool is_iterable(const Value& v) {
  return v.text() || v.list() || v.dict() || v.is_undefined() || v.loop();
}
// What has both a length and items: everything iterable but views and generators.
bool is_sequence(const Value& v) {
  if (const List* list = v.list()) {
    return list->kind == ListKind::kList || list->kind == ListKind::kTuple ||
           list->kind == ListKind::kRange;
  }
  return v.text() || v.dict() || v.is_undefined();
}

bool is_lower(Runtime& runtime, const Value& subject, const Args&) {
  const Text* text = subject.text();
  return text && find_text_method("islower")(runtime, subject, {}).truthy();
}
bool is_upper(Runtime& runtime, const Value& subject, const Args&) {
  const Text* text = subject.text();
  return text && find_text_method("isupper")(runtime, subject, {}).truthy();
}

template <CompareOp kOp>
bool compared(Runtime& runtime, const Value& subject, const Args& args) {
  ArgReader reader("test", args);
  const Value& other = reader.required("other");
  reader.finish();
  return compare_values(runtime, kOp, subject, other);
}

bool is_same(Runtime& runtime, const Value& subject, const Args& args) {
  ArgReader reader("sameas", args);
  const Value& other = reader.required("other");
  reader.finish();
  if (type_name(subject) != type_name(other)) return false;
  if (subject.list()) return subject.list() == other.list();
  if (subject.dict()) return subject.dict() == other.dict();
  return compare_values(runtime, CompareOp::kEq, subject, other);
}

bool divides(Runtime& runtime, const Value& subject, const Args& args) {
  ArgReader reader("divisibleby", args);
  const Value& divisor = reader.required("num");
  reader.finish();
  return !binary(runtime, BinaryOp::kMod, subject, divisor).truthy();
}

bool is_even(Runtime& runtime, const Value& subject, const Args&) {
  return !binary(runtime, BinaryOp::kMod, subject, Value::number(2)).truthy();
}
bool is_odd(Runtime& runtime, const Value& subject, const Args& args) {
  return !is_even(runtime, subject, args);
}

bool names_filter(Runtime&, const Value& subject, const Args&) {
  return subject.text() && find_filter(subject.text()->view());
}
bool names_test(Runtime&, const Value& subject, const Args&) {
  return subject.text() && find_predicate(subject.text()->view());
}

}  // namespace

const Predicate* find_predicate(std::string_view name) {
  static constexpr Predicate kPredicates[] = {
      {"defined", plain<is_defined>},
      {"undefined", plain<is_undefined>},
      {"none", plain<is_none>},
      {"string", plain<is_string>},
      {"mapping", plain<is_mapping>},
      {"number", plain<is_number>},
      {"integer", plain<is_integer>},
      {"float", plain<is_float>},
      {"boolean", plain<is_boolean>},
      {"true", plain<is_true>},
      {"false", plain<is_false>},
      {"callable", plain<is_callable>},
      {"iterable", plain<is_iterable>},
      {"sequence", plain<is_sequence>},
      {"lower", is_lower},
      {"upper", is_upper},
      {"even", is_even},
      {"odd", is_odd},
      {"divisibleby", divides},
      {"sameas", is_same},
      {"in", compared<CompareOp::kIn>},
      {"eq", compared<CompareOp::kEq>},
      {"equalto", compared<CompareOp::kEq>},
      {"==", compared<CompareOp::kEq>},
      {"ne", compared<CompareOp::kNe>},
      {"!=", compared<CompareOp::kNe>},
      {"lt", compared<CompareOp::kLt>},
      {"lessthan", compared<CompareOp::kLt>},
      {"<", compared<CompareOp::kLt>},
      {"le", compared<CompareOp::kLe>},
      {"<=", compared<CompareOp::kLe>},
      {"gt", compared<CompareOp::kGt>},
      {"greaterthan", compared<CompareOp::kGt>},
      {">", compared<CompareOp::kGt>},
      {"ge", compared<CompareOp::kGe>},
      {">=", compared<CompareOp::kGe>},
      {"filter", names_filter},
      {"test", names_test},
  };
  for (const Predicate& predicate : kPredicates) {
    if (predicate.name == name) return &predicate;
  }
  return nullptr;
}

}  // namespace winnow::jinja
