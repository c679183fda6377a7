#include "jinja/callable.h"

#include "jinja/errors.h"

namespace winnow::jinja {

ArgReader::ArgReader(std::string_view function, const Args& args)
    : function_(function), args_(args) {}

const Value* ArgReader::optional(std::string_view name) {
  const size_t position = next_position_++;
  const Value* found = position < args_.positional.size() ? &args_.positional[position] : nullptr;
  for (const auto& [given, value] : args_.named) {
    if (given != name) continue;
    if (found)
      fail_render(std::string(function_) + "() got multiple values for argument '" + given + "'");
    ++num_named_used_;
    found = &value;
  }
  return found;
}

const Value& ArgReader::required(std::string_view name) {
  const Value* value = optional(name);
  if (!value)
    fail_render(std::string(function_) + "() missing argument '" + std::string(name) + "'");
  return *value;
}

void ArgReader::finish() const {
  if (args_.positional.size() > next_position_ || args_.named.size() > num_named_used_) {
    fail_render(std::string(function_) + "() takes at most " + std::to_string(next_position_) +
                " arguments, and was given " +
                std::to_string(args_.positional.size() + args_.named.size()));
  }
}

Int ArgReader::integer_or(std::string_view name, Int fallback) {
  const Value* value = optional(name);
  if (!value || value->is_none()) return fallback;
  const auto number = value->integer();
  if (!number) {
    fail_render(std::string(function_) + "() argument '" + std::string(name) +
                "' must be an integer, not " + std::string(type_name(*value)));
  }
  return *number;
}

bool ArgReader::truth_or(std::string_view name, bool fallback) {
  const Value* value = optional(name);
  return value ? value->truthy() : fallback;
}

const Text* ArgReader::text_or_null(std::string_view name) {
  const Value* value = optional(name);
  if (!value || value->is_none()) return nullptr;
  if (!value->text()) {
    fail_render(std::string(function_) + "() argument '" + std::string(name) +
                "' must be str, not " + std::string(type_name(*value)));
  }
  return value->text();
}

}  // namespace winnow::jinja
