// The methods that templates may call on texts, lists and dicts.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/callable.h"
#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

using Method = Value (*)(Runtime& runtime, const Value& self, const Args& args);

// Null if there is no such method.
Method find_text_method(std::string_view name);
Method find_list_method(std::string_view name);
Method find_dict_method(std::string_view name);
// Whether Python's list or dict has a method of that name that would change it, which the sandbox
// forbids.
bool is_mutating_method(const Value& object, std::string_view name);

// `object.name` as a callable value, or nothing if the object has no such method.
std::optional<Value> bind_method(const Value& object, std::string_view name);

}  // namespace winnow::jinja
