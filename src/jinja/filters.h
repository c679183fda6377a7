// The filters that templates may use after a bar.
#pragma once

#include <string_view>
#include <vector>

#include "jinja/callable.h"
#include "jinja/runtime.h"

namespace winnow::jinja {

using FilterFunction = Value (*)(Runtime& runtime, const Value& self, const Args& args);

struct Filter {
  std::string_view name;
  FilterFunction apply;
};

// Null if there is no such filter.
const Filter* find_filter(std::string_view name);

// The families of filters, each in its own file.
const Filter* find_text_filter(std::string_view name);
const Filter* find_sequence_filter(std::string_view name);
const Filter* find_selection_filter(std::string_view name);
const Filter* find_scalar_filter(std::string_view name);

template <size_t N>
const Filter* find_filter_in(const Filter (&filters)[N], std::string_view name) {
  for (const Filter& filter : filters) {
    if (filter.name == name) return &filter;
  }
  return nullptr;
}

// item.a.b.0 for a path such as "a.b.0", as filters take it for `attribute`; a number is an index.
// `fallback`, if not null, stands in for every step that leads nowhere.
Value get_path(Runtime& runtime, const Value& item, const Value& path,
               const Value* fallback = nullptr);
// For filters that compare: lower case unless `case_sensitive`.
Value comparison_key(Runtime& runtime, const Value& value, bool case_sensitive);

}  // namespace winnow::jinja
