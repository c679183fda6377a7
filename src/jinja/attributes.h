// object.name, object[key] and object[start:stop:step], as Jinja's sandbox resolves them.
#pragma once

#include <optional>
#include <string_view>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

// Methods before items, as in Jinja: message.items is the method even if there is such a key.
// What is missing is undefined; what templates may not touch is undefined and forbidden.
Value get_attribute(Runtime& runtime, const Value& object, std::string_view name);
// Items before methods.
Value get_item(Runtime& runtime, const Value& object, const Value& key);
// An absent or None bound is open.
Value get_slice(Runtime& runtime, const Value& object, const Value& start, const Value& stop,
                const Value& step);

}  // namespace winnow::jinja
