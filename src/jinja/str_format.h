// Python's str.format: {}, {0}, {name}, attribute and item access, and format specifications.
#pragma once

#include "jinja/callable.h"
#include "jinja/runtime.h"

namespace winnow::jinja {

Text str_format(Runtime& runtime, const Text& format, const Args& args);

}  // namespace winnow::jinja
