#include <algorithm>

#include "jinja/errors.h"
#include "jinja/methods.h"
#include "jinja/operators.h"

namespace winnow::jinja {
namespace {

Value dict_view(Runtime& runtime, const Value& self, const Args& args, ListKind kind) {
  ArgReader("dict method", args).finish();
  std::vector<Value> items;
  for (const auto& [key, value] : self.dict()->entries) {
    runtime.step();
    if (kind == ListKind::kItems) {
      items.push_back(make_list({key, value}, ListKind::kTuple));
    } else {
      items.push_back(kind == ListKind::kKeys ? key : value);
    }
  }
  return make_list(std::move(items), kind);
}

Value dict_items(Runtime& runtime, const Value& self, const Args& args) {
  return dict_view(runtime, self, args, ListKind::kItems);
}
Value dict_keys(Runtime& runtime, const Value& self, const Args& args) {
  return dict_view(runtime, self, args, ListKind::kKeys);
}
Value dict_values(Runtime& runtime, const Value& self, const Args& args) {
  return dict_view(runtime, self, args, ListKind::kValues);
}

Value dict_get(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("get", args);
  const Value& key = reader.required("key");
  const Value* fallback = reader.optional("default");
  reader.finish();
  runtime.step(key.text() ? 1 : self.dict()->entries.size());
  if (const Value* found = self.dict()->find(key)) return *found;
  return fallback ? *fallback : Value(None{});
}

Value shallow_copy(Runtime&, const Value& self, const Args& args) {
  ArgReader("copy", args).finish();
  return self;
}

Value list_count(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("count", args);
  const Value& wanted = reader.required("value");
  reader.finish();
  int64_t count = 0;
  for (const Value& item : self.list()->items) {
    runtime.step(std::min(item.weight(), wanted.weight()));
    count += equal(item, wanted) ? 1 : 0;
  }
  return Value::number(count);
}

Value list_index(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("index", args);
  const Value& wanted = reader.required("value");
  reader.finish();
  const std::vector<Value>& items = self.list()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    runtime.step(std::min(items[i].weight(), wanted.weight()));
    if (equal(items[i], wanted)) return Value::number(static_cast<int64_t>(i));
  }
  fail_render("value is not in list");
}

Value loop_cycle(Runtime&, const Value& self, const Args& args) {
  if (args.positional.empty()) fail_render("no items for cycling given");
  return args.positional[self.loop()->index0 % args.positional.size()];
}

Value loop_changed(Runtime& runtime, const Value& self, const Args& args) {
  // The loop's memory of the last call is its own; nothing else can see it.
  auto& last = const_cast<Loop*>(self.loop())->last_changed;
  bool same = last && last->size() == args.positional.size();
  for (size_t i = 0; same && i < last->size(); ++i) {
    runtime.step(std::min((*last)[i].weight(), args.positional[i].weight()));
    same = equal((*last)[i], args.positional[i]);
  }
  if (!same && !self.loop()->finished) last = args.positional;
  return !same;
}

template <size_t N>
Method find_in(const std::pair<std::string_view, Method> (&methods)[N], std::string_view name) {
  for (const auto& [known, method] : methods) {
    if (known == name) return method;
  }
  return nullptr;
}

class BoundMethod : public Callable {
 public:
  BoundMethod(Value self, std::string name, Method method)
      : self_(std::move(self)), name_(std::move(name)), method_(method) {}

  Value call(Runtime& runtime, Args args) const override { return method_(runtime, self_, args); }
  std::string_view name() const override { return name_; }
  int depth() const override { return self_.depth() + 1; }

 private:
  Value self_;
  std::string name_;
  Method method_;
};

}  // namespace

Method find_dict_method(std::string_view name) {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {{"items", dict_items},
                                                                     {"keys", dict_keys},
                                                                     {"values", dict_values},
                                                                     {"get", dict_get},
                                                                     {"copy", shallow_copy}};
  return find_in(kMethods, name);
}

Method find_list_method(std::string_view name) {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"count", list_count}, {"index", list_index}, {"copy", shallow_copy}};
  return find_in(kMethods, name);
}

bool is_mutating_method(const Value& object, std::string_view name) {
  static constexpr std::string_view kDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
  static constexpr std::string_view kList[] = {"append", "clear",  "extend",  "insert",
                                               "pop",    "remove", "reverse", "sort"};
  if (object.dict()) return std::find(std::begin(kDict), std::end(kDict), name) != std::end(kDict);
  const bool plain_list = object.list() && object.list()->kind == ListKind::kList;
  return plain_list && std::find(std::begin(kList), std::end(kList), name) != std::end(kList);
}

std::optional<Value> bind_method(const Value& object, std::string_view name) {
  static constexpr std::pair<std::string_view, Method> kLoopMethods[] = {{"cycle", loop_cycle},
                                                                         {"changed", loop_changed}};
  Method method = nullptr;
  if (object.text()) {
    method = find_text_method(name);
  } else if (object.dict()) {
    method = find_dict_method(name);
  } else if (object.list() && object.list()->kind != ListKind::kGenerator) {
    method = find_list_method(name);
  } else if (object.loop()) {
    method = find_in(kLoopMethods, name);
  }
  if (!method) return std::nullopt;
  return Value(std::shared_ptr<const Callable>(
      std::make_shared<BoundMethod>(object, std::string(name), method)));
}

}  // namespace winnow::jinja
