#include "jinja/value.h"

#include <algorithm>

#include "jinja/callable.h"
#include "jinja/errors.h"

namespace winnow::jinja {

Value Value::undefined(std::string reason) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason)), false};
  return value;
}

Value Value::forbidden(std::string reason) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason)), true};
  return value;
}

const Text* Value::text() const {
  const auto* p = std::get_if<std::shared_ptr<const Text>>(&data_);
  return p ? p->get() : nullptr;
}
const List* Value::list() const {
  const auto* p = std::get_if<std::shared_ptr<List>>(&data_);
  return p ? p->get() : nullptr;
}
const Dict* Value::dict() const {
  const auto* p = std::get_if<std::shared_ptr<const Dict>>(&data_);
  return p ? p->get() : nullptr;
}
Namespace* Value::space() const {
  const auto* p = std::get_if<std::shared_ptr<Namespace>>(&data_);
  return p ? p->get() : nullptr;
}
const Loop* Value::loop() const {
  const auto* p = std::get_if<std::shared_ptr<Loop>>(&data_);
  return p ? p->get() : nullptr;
}
const Callable* Value::callable() const {
  const auto* p = std::get_if<std::shared_ptr<const Callable>>(&data_);
  return p ? p->get() : nullptr;
}

std::optional<Int> Value::integer() const {
  if (const auto* n = std::get_if<Int>(&data_)) return *n;
  if (const auto* b = std::get_if<bool>(&data_)) return Int{*b};
  return std::nullopt;
}

std::optional<double> Value::real() const {
  if (const auto* d = std::get_if<double>(&data_)) return *d;
  if (const auto n = integer()) return static_cast<double>(*n);
  return std::nullopt;
}

Value Value::with_origin(Origin origin) const {
  Value copy = *this;
  copy.origin_ = origin;
  return copy;
}

bool Value::truthy() const {
  if (is_undefined() || is_none()) return false;
  if (const auto n = integer()) return *n != 0;
  if (is_float()) return std::get<double>(data_) != 0.0;
  if (const Text* t = text()) return !t->empty();
  if (const List* l = list()) return l->kind == ListKind::kGenerator || !l->items.empty();
  if (const Dict* d = dict()) return !d->entries.empty();
  if (const Loop* l = loop()) return l->length != 0;
  return true;
}

int Value::depth() const {
  if (const List* l = list()) return l->depth;
  if (const Dict* d = dict()) return d->depth;
  if (const Loop* l = loop()) return l->value_depth;
  if (const Callable* c = callable()) return c->depth();
  return 0;
}

size_t Value::weight() const {
  if (const Text* t = text()) return 1 + t->size() / 32;
  if (const List* l = list()) return l->weight;
  if (const Dict* d = dict()) return d->weight;
  return 1;
}

namespace {

size_t heavier(size_t current, const Value& child) {
  const size_t weight = current + child.weight();
  if (weight > kMaxValueWeight) {
    fail_render("a list or object of the template has more than " +
                std::to_string(kMaxValueWeight) + " parts");
  }
  return weight;
}

int deeper(int current, const Value& child) {
  const int depth = std::max(current, child.depth() + 1);
  if (depth > kMaxValueDepth) {
    fail_render("lists and objects are nested more than " + std::to_string(kMaxValueDepth) +
                " deep");
  }
  return depth;
}

void require_hashable(const Value& key) {
  if (key.dict() || key.loop() || (key.list() && key.list()->kind == ListKind::kList)) {
    fail_render("unhashable type: '" + std::string(type_name(key)) + "'");
  }
  if (key.list() && key.list()->kind == ListKind::kTuple) {
    for (const Value& item : key.list()->items) require_hashable(item);
  }
}

}  // namespace

std::shared_ptr<List> make_list(std::vector<Value> items, ListKind kind) {
  auto list = std::make_shared<List>();
  list->kind = kind;
  for (const Value& item : items) {
    list->depth = deeper(list->depth, item);
    list->weight = heavier(list->weight, item);
  }
  list->items = std::move(items);
  return list;
}

const Value* Dict::find(const Value& key) const {
  const auto index = index_of(key);
  return index ? &entries[*index].second : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  const auto it = text_index_.find(key);
  return it == text_index_.end() ? nullptr : &entries[it->second].second;
}

void Dict::set(Value key, Value value) {
  require_hashable(key);
  depth = deeper(deeper(depth, value), key);
  if (const auto index = index_of(key)) {
    Value& old = entries[*index].second;
    weight = heavier(weight - old.weight(), value);
    old = std::move(value);
    return;
  }
  weight = heavier(heavier(weight, value), key);
  entries.emplace_back(std::move(key), std::move(value));
  if (const Text* text = entries.back().first.text())
    text_index_.emplace(text->view(), entries.size() - 1);
}

std::optional<size_t> Dict::index_of(const Value& key) const {
  if (const Text* text = key.text()) {
    const auto it = text_index_.find(text->view());
    return it == text_index_.end() ? std::nullopt : std::optional(it->second);
  }
  if (text_index_.size() == entries.size()) return std::nullopt;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (equal(entries[i].first, key)) return i;
  }
  return std::nullopt;
}

int compare_numbers(const Value& a, const Value& b) {
  const auto ia = a.integer();
  const auto ib = b.integer();
  if (ia && ib) return *ia < *ib ? -1 : (*ia > *ib ? 1 : 0);
  const double da = *a.real();
  const double db = *b.real();
  return da < db ? -1 : (da > db ? 1 : 0);
}

namespace {

bool is_set_like(const List& list) { return list.kind == ListKind::kGenerator; }

bool equal_lists(const List& a, const List& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || is_set_like(a) || a.items.size() != b.items.size()) return false;
  return std::equal(a.items.begin(), a.items.end(), b.items.begin(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other && equal(entry.second, *other);
  });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (a.is_undefined() || b.is_undefined()) return a.is_undefined() && b.is_undefined();
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_number() && b.is_number()) {
    return *a.real() == *b.real() && compare_numbers(a, b) == 0;
  }
  if (a.text() && b.text()) return a.text()->view() == b.text()->view();
  if (a.list() && b.list()) return equal_lists(*a.list(), *b.list());
  if (a.dict() && b.dict()) return equal_dicts(*a.dict(), *b.dict());
  if (a.space() && b.space()) return a.space() == b.space();
  if (a.callable() && b.callable()) return a.callable() == b.callable();
  if (a.loop() && b.loop()) return a.loop() == b.loop();
  return false;
}

std::string_view type_name(const Value& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.text()) return "str";
  if (value.dict()) return "dict";
  if (value.space()) return "Namespace";
  if (value.loop()) return "LoopContext";
  if (const List* list = value.list()) {
    switch (list->kind) {
      case ListKind::kList:
        return "list";
      case ListKind::kTuple:
        return "tuple";
      case ListKind::kGenerator:
        return "generator";
      case ListKind::kKeys:
        return "dict_keys";
      case ListKind::kValues:
        return "dict_values";
      case ListKind::kItems:
        return "dict_items";
      case ListKind::kRange:
        return "range";
    }
  }
  return "function";
}

int compare(const Value& a, const Value& b, std::string_view operation) {
  if (a.is_number() && b.is_number()) return compare_numbers(a, b);
  if (a.text() && b.text()) {
    const int order = a.text()->view().compare(b.text()->view());
    return order < 0 ? -1 : (order > 0 ? 1 : 0);
  }
  const List* la = a.list();
  const List* lb = b.list();
  const auto ordered = [](const List& l) {
    return l.kind == ListKind::kList || l.kind == ListKind::kTuple;
  };
  if (la && lb && la->kind == lb->kind && ordered(*la)) {
    const size_t common = std::min(la->items.size(), lb->items.size());
    for (size_t i = 0; i < common; ++i) {
      if (!equal(la->items[i], lb->items[i])) return compare(la->items[i], lb->items[i], operation);
    }
    return la->items.size() < lb->items.size() ? -1 : (la->items.size() > lb->items.size() ? 1 : 0);
  }
  fail_render("'" + std::string(operation) + "' not supported between instances of '" +
              std::string(type_name(a)) + "' and '" + std::string(type_name(b)) + "'");
}

}  // namespace winnow::jinja
