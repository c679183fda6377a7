#include "jinja/attributes.h"

#include <algorithm>

#include "jinja/callable.h"
#include "jinja/errors.h"
#include "jinja/methods.h"
#include "jinja/operators.h"
#include "jinja/stringify.h"
#include "jinja/text_ops.h"
#include "jinja/utf8.h"

namespace winnow::jinja {
namespace {

std::string object_name(const Value& object) {
  if (object.is_none()) return "None";
  return std::string(type_name(object)) + " object";
}

Value missing_attribute(const Value& object, std::string_view name) {
  return Value::undefined("'" + object_name(object) + "' has no attribute '" + std::string(name) +
                          "'");
}

Value missing_item(Runtime& runtime, const Value& object, const Value& key) {
  if (key.text()) return missing_attribute(object, key.text()->view());
  return Value::undefined(object_name(object) + " has no element " + repr(runtime, key));
}

std::optional<Value> loop_attribute(const Loop& loop, std::string_view name) {
  const auto number = [](size_t n) { return Value::number(static_cast<int64_t>(n)); };
  if (name == "index") return number(loop.index0 + 1);
  if (name == "index0") return number(loop.index0);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 == loop.length);
  if (name == "length") return number(loop.length);
  if (name == "revindex") return number(loop.length - loop.index0);
  if (name == "revindex0") return number(loop.length - loop.index0 - 1);
  // Only recursive loops would count deeper.
  if (name == "depth") return Value::number(1);
  if (name == "depth0") return Value::number(0);
  if (name == "previtem") {
    if (loop.index0 == 0 || loop.index0 > loop.items.size())
      return Value::undefined("there is no previous item");
    return loop.items[loop.index0 - 1];
  }
  if (name == "nextitem") {
    if (loop.index0 + 1 >= loop.items.size()) return Value::undefined("there is no next item");
    return loop.items[loop.index0 + 1];
  }
  return std::nullopt;
}

std::optional<size_t> normal_index(Int index, size_t length) {
  const auto signed_length = static_cast<Int>(length);
  if (index < 0) index += signed_length;
  if (index < 0 || index >= signed_length) return std::nullopt;
  return static_cast<size_t>(index);
}

// object[key] alone, without a look at methods.
std::optional<Value> subscript(Runtime& runtime, const Value& object, const Value& key) {
  if (const Dict* dict = object.dict()) {
    if (const Text* text = key.text()) {
      runtime.read_bytes(text->size());
    } else {
      runtime.step(dict->entries.size());
    }
    const Value* found = dict->find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  if (const Namespace* space = object.space(); space && key.text()) {
    const Value* found = space->attributes.find(key);
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto index = key.integer();
  if (!index) return std::nullopt;
  if (const List* list = object.list()) {
    if (list->kind != ListKind::kList && list->kind != ListKind::kTuple &&
        list->kind != ListKind::kRange)
      return std::nullopt;
    const auto at = normal_index(*index, list->items.size());
    return at ? std::optional(list->items[*at]) : std::nullopt;
  }
  if (const Text* text = object.text()) {
    count_offsets(runtime, text->size());
    const std::vector<size_t> offsets = utf8_offsets(text->view());
    const auto at = normal_index(*index, offsets.size() - 1);
    if (at) return runtime.make_text(text->slice(offsets[*at], offsets[*at + 1]));
  }
  return std::nullopt;
}

std::optional<Value> method_or_forbidden(const Value& object, std::string_view name) {
  if (auto method = bind_method(object, name)) return method;
  const bool internal = name.size() > 4 && name.starts_with("__") && name.ends_with("__");
  if (internal || is_mutating_method(object, name)) {
    return Value::forbidden("access to attribute '" + std::string(name) + "' of '" +
                            std::string(type_name(object)) + "' object is unsafe.");
  }
  return std::nullopt;
}

struct SliceBounds {
  Int start, stop, step;
};

std::optional<Int> slice_bound(const Value& value) {
  if (value.is_none()) return std::nullopt;
  require_defined(value);
  const auto number = value.integer();
  if (!number)
    fail_render("slice indices must be integers or None, not " + std::string(type_name(value)));
  return number;
}

SliceBounds slice_bounds(const Value& start, const Value& stop, const Value& step, size_t size) {
  const auto length = static_cast<Int>(size);
  SliceBounds bounds{0, 0, slice_bound(step).value_or(1)};
  if (bounds.step == 0) fail_render("slice step cannot be zero");
  const bool backwards = bounds.step < 0;
  const Int lowest = backwards ? -1 : 0;
  const Int highest = backwards ? length - 1 : length;
  const auto clamp = [&](std::optional<Int> given, Int open) {
    if (!given) return open;
    const Int from_start = *given < 0 ? *given + length : *given;
    return std::clamp(from_start, lowest, highest);
  };
  bounds.start = clamp(slice_bound(start), backwards ? highest : lowest);
  bounds.stop = clamp(slice_bound(stop), backwards ? lowest : highest);
  return bounds;
}

std::vector<size_t> slice_indices(const SliceBounds& bounds) {
  std::vector<size_t> indices;
  for (Int i = bounds.start; bounds.step > 0 ? i < bounds.stop : i > bounds.stop;
       i += bounds.step) {
    indices.push_back(static_cast<size_t>(i));
  }
  return indices;
}

Value slice_text(Runtime& runtime, const Text& text, const Value& start, const Value& stop,
                 const Value& step) {
  count_offsets(runtime, text.size());
  const std::vector<size_t> offsets = utf8_offsets(text.view());
  const SliceBounds bounds = slice_bounds(start, stop, step, offsets.size() - 1);
  if (bounds.step == 1) {
    const auto begin = static_cast<size_t>(bounds.start);
    const auto end = static_cast<size_t>(std::max(bounds.start, bounds.stop));
    return runtime.make_text(text.slice(offsets[begin], offsets[end]));
  }
  runtime.step(text.size() / 2);
  runtime.require_room(text.size() * sizeof(size_t));
  Text out;
  for (const size_t i : slice_indices(bounds)) out.append(text, offsets[i], offsets[i + 1]);
  return runtime.make_text(std::move(out));
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& object, std::string_view name) {
  require_defined(object);
  if (const Namespace* space = object.space()) {
    const Value* found = space->attributes.find(name);
    return found ? *found : missing_attribute(object, name);
  }
  if (const Loop* loop = object.loop()) {
    if (auto found = loop_attribute(*loop, name)) return *found;
  }
  if (object.callable() && name == "name") return Value::template_text(object.callable()->name());
  if (auto found = method_or_forbidden(object, name)) return *found;
  if (const Dict* dict = object.dict()) {
    runtime.step();
    if (const Value* found = dict->find(name)) return *found;
  }
  return missing_attribute(object, name);
}

Value get_item(Runtime& runtime, const Value& object, const Value& key) {
  require_defined(object);
  if (auto found = subscript(runtime, object, key)) return *found;
  if (const Text* name = key.text()) {
    if (const Loop* loop = object.loop()) {
      if (auto found = loop_attribute(*loop, name->view())) return *found;
    }
    if (auto found = method_or_forbidden(object, name->view())) return *found;
  }
  return missing_item(runtime, object, key);
}

Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step) {
  require_defined(object);
  if (const Text* text = object.text()) return slice_text(runtime, *text, start, stop, step);
  const List* list = object.list();
  if (!list || (list->kind != ListKind::kList && list->kind != ListKind::kTuple &&
                list->kind != ListKind::kRange)) {
    return Value::undefined(object_name(object) + " cannot be sliced");
  }
  const SliceBounds bounds = slice_bounds(start, stop, step, list->items.size());
  std::vector<Value> items;
  for (const size_t i : slice_indices(bounds)) items.push_back(list->items[i]);
  runtime.step(items.size());
  return make_list(std::move(items), list->kind);
}

}  // namespace winnow::jinja
