// map, select, reject, selectattr, rejectattr: filters that take the name of another filter or
// test.
#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/predicates.h"

namespace winnow::jinja {
namespace {

Args arguments_from(const Args& args, size_t first) {
  Args rest;
  rest.named = args.named;
  for (size_t i = first; i < args.positional.size(); ++i)
    rest.positional.push_back(args.positional[i]);
  return rest;
}

std::string_view name_argument(const Args& args, size_t position, std::string_view what) {
  if (position >= args.positional.size() || !args.positional[position].text()) {
    fail_render("expected the name of a " + std::string(what));
  }
  return args.positional[position].text()->view();
}

const Value* named_argument(const Args& args, std::string_view name) {
  for (const auto& [known, value] : args.named) {
    if (known == name) return &value;
  }
  return nullptr;
}

Value map_attribute(Runtime& runtime, const std::vector<Value>& items, const Value& attribute,
                    const Value* fallback) {
  std::vector<Value> mapped;
  for (const Value& item : items) {
    mapped.push_back(get_path(runtime, item, attribute, fallback));
  }
  return make_list(std::move(mapped), ListKind::kGenerator);
}

Value map_filter(Runtime& runtime, const Value& self, const Args& args) {
  const std::vector<Value> items = iterate(runtime, self);
  const Value* attribute = named_argument(args, "attribute");
  if (args.positional.empty() && attribute) {
    return map_attribute(runtime, items, *attribute, named_argument(args, "default"));
  }
  const std::string_view name = name_argument(args, 0, "filter");
  const Filter* filter = find_filter(name);
  if (!filter) fail_render("No filter named '" + std::string(name) + "'.");
  const Args rest = arguments_from(args, 1);
  std::vector<Value> mapped;
  for (const Value& item : items) {
    const Runtime::Nesting nesting(runtime);
    mapped.push_back(filter->apply(runtime, item, rest));
  }
  return make_list(std::move(mapped), ListKind::kGenerator);
}

// Keeps the items whose test (or truth, if no test is named) equals `wanted`. The test's name is
// the argument at `first`; with `attribute` it looks at that part of each item.
Value select_items(Runtime& runtime, const Value& self, const Args& args, const Value* attribute,
                   size_t first, bool wanted) {
  const Predicate* predicate = nullptr;
  Args rest;
  if (args.positional.size() > first) {
    const std::string_view name = name_argument(args, first, "test");
    predicate = find_predicate(name);
    if (!predicate) fail_render("No test named '" + std::string(name) + "'.");
    rest = arguments_from(args, first + 1);
  }
  std::vector<Value> kept;
  for (Value& item : iterate(runtime, self)) {
    const Value subject = attribute ? get_path(runtime, item, *attribute) : item;
    const bool holds = predicate ? predicate->holds(runtime, subject, rest) : subject.truthy();
    if (holds == wanted) kept.push_back(std::move(item));
  }
  return make_list(std::move(kept), ListKind::kGenerator);
}

Value select_filter(Runtime& runtime, const Value& self, const Args& args) {
  return select_items(runtime, self, args, nullptr, 0, true);
}
Value reject_filter(Runtime& runtime, const Value& self, const Args& args) {
  return select_items(runtime, self, args, nullptr, 0, false);
}

const Value& attribute_argument(const Args& args) {
  if (args.positional.empty()) fail_render("Missing parameter for attribute name");
  return args.positional[0];
}

Value selectattr_filter(Runtime& runtime, const Value& self, const Args& args) {
  return select_items(runtime, self, args, &attribute_argument(args), 1, true);
}
Value rejectattr_filter(Runtime& runtime, const Value& self, const Args& args) {
  return select_items(runtime, self, args, &attribute_argument(args), 1, false);
}

}  // namespace

const Filter* find_selection_filter(std::string_view name) {
  static constexpr Filter kFilters[] = {
      {"map", map_filter},
      {"select", select_filter},
      {"reject", reject_filter},
      {"selectattr", selectattr_filter},
      {"rejectattr", rejectattr_filter},
  };
  return find_filter_in(kFilters, name);
}

}  // namespace winnow::jinja
