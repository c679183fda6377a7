#include "jinja/filters.h"

#include <charconv>

#include "jinja/attributes.h"
#include "jinja/text_ops.h"

namespace winnow::jinja {

const Filter* find_filter(std::string_view name) {
  for (const auto find :
       {find_text_filter, find_sequence_filter, find_selection_filter, find_scalar_filter}) {
    if (const Filter* filter = find(name)) return filter;
  }
  return nullptr;
}

namespace {

Value get_part(Runtime& runtime, const Value& item, const Value& key, const Value* fallback) {
  Value value = get_item(runtime, item, key);
  return fallback && value.is_undefined() ? *fallback : value;
}

}  // namespace

Value get_path(Runtime& runtime, const Value& item, const Value& path, const Value* fallback) {
  if (!path.text()) return get_part(runtime, item, path, fallback);
  std::string_view rest = path.text()->view();
  Value value = item;
  while (true) {
    const size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index =
        !part.empty() && read.ec == std::errc() && read.ptr == part.data() + part.size();
    value = get_part(runtime, value, is_index ? Value::number(index) : Value::template_text(part),
                     fallback);
    if (dot == rest.npos) return value;
    rest.remove_prefix(dot + 1);
  }
}

Value comparison_key(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.text()) return value;
  return runtime.make_text(to_lower(*value.text()));
}

}  // namespace winnow::jinja
