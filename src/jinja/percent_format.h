// Python's text % arguments.
#pragma once

#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

// `arguments`: a tuple of arguments, a dict for %(name)s, or a single argument.
Text percent_format(Runtime& runtime, const Text& format, const Value& arguments);
// One number or text in a style such as "05.2f" or "<10" with the conversion letter last (none: as
// str() would). Shared by % and str.format.
struct FieldStyle {
  char fill = ' ';
  char align = '\0';  // '<', '>', '^', '=' or none
  bool plus = false;
  bool thousands = false;
  size_t width = 0;
  int precision = -1;
  char conversion = '\0';
};
Text format_field(Runtime& runtime, const FieldStyle& style, const Value& value);

}  // namespace winnow::jinja
