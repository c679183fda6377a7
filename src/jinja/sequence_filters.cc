#include <algorithm>

#include "jinja/attributes.h"
#include "jinja/errors.h"
#include "jinja/filters.h"
#include "jinja/operators.h"
#include "jinja/text_ops.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

Value length_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("length", args).finish();
  size_t length = 0;
  if (const Text* text = self.text()) {
    runtime.step(text->size() / 8);
    length = utf8_length(text->view());
  } else if (const List* list = self.list(); list && list->kind != ListKind::kGenerator) {
    length = list->items.size();
  } else if (const Dict* dict = self.dict()) {
    length = dict->entries.size();
  } else if (const Loop* loop = self.loop()) {
    length = loop->length;
  } else if (!self.is_undefined()) {
    fail_render("object of type '" + std::string(type_name(self)) + "' has no len()");
  }
  return Value::number(static_cast<int64_t>(length));
}

Value list_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("list", args).finish();
  return make_list(iterate(runtime, self));
}

Value first_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("first", args).finish();
  const std::vector<Value> items = iterate(runtime, self);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value last_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("last", args).finish();
  const std::vector<Value> items = iterate(runtime, self);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value reverse_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("reverse", args).finish();
  if (self.text()) return get_slice(runtime, self, None{}, None{}, Value::number(-1));
  std::vector<Value> items = iterate(runtime, self);
  std::reverse(items.begin(), items.end());
  return make_list(std::move(items), ListKind::kGenerator);
}

struct Keyed {
  Value key;
  Value value;
};

std::vector<Keyed> with_keys(Runtime& runtime, std::vector<Value> items, const Value* attribute,
                             bool case_sensitive) {
  std::vector<Keyed> keyed;
  for (Value& item : items) {
    const Value key =
        attribute && !attribute->is_none() ? get_path(runtime, item, *attribute) : item;
    keyed.push_back({comparison_key(runtime, key, case_sensitive), std::move(item)});
  }
  return keyed;
}

// Stable; `reverse` keeps the order of equal elements, as Python does.
void sort_keyed(Runtime& runtime, std::vector<Keyed>& keyed, bool reverse) {
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    runtime.step(std::min(a.key.weight(), b.key.weight()));
    return reverse ? compare(b.key, a.key, "<") < 0 : compare(a.key, b.key, "<") < 0;
  });
}

Value sort_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("sort", args);
  const bool reverse = reader.truth_or("reverse", false);
  const bool case_sensitive = reader.truth_or("case_sensitive", false);
  const Value* attribute = reader.optional("attribute");
  reader.finish();
  std::vector<Keyed> keyed = with_keys(runtime, iterate(runtime, self), attribute, case_sensitive);
  sort_keyed(runtime, keyed, reverse);
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.value));
  return make_list(std::move(items));
}

Value unique_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("unique", args);
  const bool case_sensitive = reader.truth_or("case_sensitive", false);
  const Value* attribute = reader.optional("attribute");
  reader.finish();
  Dict seen;
  std::vector<Value> items;
  for (Keyed& entry : with_keys(runtime, iterate(runtime, self), attribute, case_sensitive)) {
    runtime.step(entry.key.text() ? 1 : seen.entries.size());
    if (seen.find(entry.key)) continue;
    seen.set(entry.key, None{});
    items.push_back(std::move(entry.value));
  }
  return make_list(std::move(items), ListKind::kGenerator);
}

const Dict& require_dict(const Value& self, std::string_view filter) {
  require_defined(self);
  if (!self.dict())
    fail_render(std::string(filter) + " filter needs a mapping, got " +
                std::string(type_name(self)));
  return *self.dict();
}

Value pair_of(const std::pair<Value, Value>& entry) {
  return make_list({entry.first, entry.second}, ListKind::kTuple);
}

Value dictsort_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("dictsort", args);
  const bool case_sensitive = reader.truth_or("case_sensitive", false);
  const Text* by = reader.text_or_null("by");
  const bool reverse = reader.truth_or("reverse", false);
  reader.finish();
  const bool by_value = by && by->view() == "value";
  if (by && !by_value && by->view() != "key")
    fail_render("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& entry : require_dict(self, "dictsort").entries) {
    keyed.push_back({comparison_key(runtime, by_value ? entry.second : entry.first, case_sensitive),
                     pair_of(entry)});
  }
  sort_keyed(runtime, keyed, reverse);
  std::vector<Value> items;
  for (Keyed& entry : keyed) items.push_back(std::move(entry.value));
  return make_list(std::move(items));
}

Value items_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader("items", args).finish();
  std::vector<Value> items;
  if (!self.is_undefined()) {
    if (!self.dict()) fail_render("Can only get item pairs from a mapping.");
    for (const auto& entry : self.dict()->entries) {
      runtime.step();
      items.push_back(pair_of(entry));
    }
  }
  return make_list(std::move(items), ListKind::kGenerator);
}

Value batch_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("batch", args);
  const Int size = reader.integer_or("linecount", 0);
  const Value* fill = reader.optional("fill_with");
  reader.finish();
  if (size < 1 || size > 1'000'000) fail_render("batch() linecount must be from 1 to 1000000");
  std::vector<Value> rows;
  std::vector<Value> row;
  for (Value& item : iterate(runtime, self)) {
    row.push_back(std::move(item));
    if (static_cast<Int>(row.size()) == size) rows.push_back(make_list(std::exchange(row, {})));
  }
  if (!row.empty()) {
    if (fill && !fill->is_none()) {
      runtime.step(static_cast<size_t>(size));
      row.resize(static_cast<size_t>(size), *fill);
    }
    rows.push_back(make_list(std::move(row)));
  }
  return make_list(std::move(rows), ListKind::kGenerator);
}

Value extreme(Runtime& runtime, const Value& self, const Args& args, std::string_view name,
              int wanted_order) {
  ArgReader reader(name, args);
  const bool case_sensitive = reader.truth_or("case_sensitive", false);
  const Value* attribute = reader.optional("attribute");
  reader.finish();
  const std::vector<Keyed> keyed =
      with_keys(runtime, iterate(runtime, self), attribute, case_sensitive);
  if (keyed.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const Keyed* best = &keyed[0];
  for (const Keyed& entry : keyed) {
    runtime.step(std::min(entry.key.weight(), best->key.weight()));
    if (compare(entry.key, best->key, wanted_order < 0 ? "<" : ">") == wanted_order) best = &entry;
  }
  return best->value;
}

Value min_filter(Runtime& runtime, const Value& self, const Args& args) {
  return extreme(runtime, self, args, "min", -1);
}
Value max_filter(Runtime& runtime, const Value& self, const Args& args) {
  return extreme(runtime, self, args, "max", 1);
}

Value sum_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("sum", args);
  const Value* attribute = reader.optional("attribute");
  const Value* start = reader.optional("start");
  reader.finish();
  Value sum = start ? *start : Value::number(0);
  for (const Value& item : iterate(runtime, self)) {
    const Value term =
        attribute && !attribute->is_none() ? get_path(runtime, item, *attribute) : item;
    sum = binary(runtime, BinaryOp::kAdd, sum, term);
  }
  return sum;
}

Value groupby_filter(Runtime& runtime, const Value& self, const Args& args) {
  ArgReader reader("groupby", args);
  const Value& attribute = reader.required("attribute");
  const Value* fallback = reader.optional("default");
  const bool case_sensitive = reader.truth_or("case_sensitive", false);
  reader.finish();
  std::vector<Keyed> keyed = with_keys(runtime, iterate(runtime, self), &attribute, case_sensitive);
  for (Keyed& entry : keyed) {
    if (entry.key.is_undefined() && fallback) entry.key = *fallback;
  }
  sort_keyed(runtime, keyed, false);
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    std::vector<Value> members;
    size_t end = begin;
    for (; end < keyed.size() && equal(keyed[end].key, keyed[begin].key); ++end)
      members.push_back(keyed[end].value);
    Value name = get_path(runtime, members[0], attribute);
    if (name.is_undefined()) name = keyed[begin].key;
    groups.push_back(make_list({name, make_list(std::move(members))}, ListKind::kTuple));
    begin = end;
  }
  return make_list(std::move(groups));
}

}  // namespace

const Filter* find_sequence_filter(std::string_view name) {
  static constexpr Filter kFilters[] = {
      {"length", length_filter}, {"count", length_filter},  {"list", list_filter},
      {"first", first_filter},   {"last", last_filter},     {"reverse", reverse_filter},
      {"sort", sort_filter},     {"unique", unique_filter}, {"dictsort", dictsort_filter},
      {"items", items_filter},   {"batch", batch_filter},   {"min", min_filter},
      {"max", max_filter},       {"sum", sum_filter},       {"groupby", groupby_filter},
  };
  return find_filter_in(kFilters, name);
}

}  // namespace winnow::jinja
