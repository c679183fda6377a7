// How the interpreter gives up. These exceptions never leave src/jinja: Template and build.h turn
// them into Results.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace winnow::jinja {

struct TemplateError {
  ErrorCode code;
  std::string message;
  int line = 0;  // 0: not known yet
};

// In place of a line: the template itself refused, and its words stand alone.
inline constexpr int kRaisedByTemplate = -1;

// The template or its data ask for something that has no meaning ("'x' is undefined").
[[noreturn]] inline void fail_render(std::string message) {
  throw TemplateError{ErrorCode::kInvalidArgument, std::move(message)};
}

// The template uses something that this interpreter does not know.
[[noreturn]] inline void fail_unsupported(std::string message) {
  throw TemplateError{ErrorCode::kUnsupported, std::move(message)};
}

}  // namespace winnow::jinja
