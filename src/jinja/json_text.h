// The tojson filter: Python's json.dumps.
#pragma once

#include <optional>
#include <string>

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

struct JsonStyle {
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  std::optional<std::string> indent;  // what one level is indented by; nothing: all on one line
  bool ensure_ascii = false;
  bool sort_keys = false;
};

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace winnow::jinja
