// Template: a parsed Jinja template, rendered with given variables. Nothing outside of those
// variables, the clock value and the built-in functions is within its reach, and its time, memory
// and output are bounded.
#pragma once

#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "jinja/rendered_text.h"
#include "jinja/runtime.h"
#include "jinja/value.h"

namespace winnow::jinja {

struct Variable {
  std::string name;
  Value value;
};

struct Rendering {
  RenderedText output;
  RenderNotes notes;
};

struct RenderFailure {
  Error error;
  bool raised_by_template = false;
};

class Template {
 public:
  // kInvalidArgument for what Jinja refuses too, kUnsupported for what only this interpreter does
  // not know; both with the line.
  static Result<Template> parse(std::string_view source);
  ~Template();
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;

  // `limits` grow with the weight of the variables. Of those with the same name the last counts.
  // `now` is what strftime_now shows.
  std::variant<Rendering, RenderFailure> render(std::span<const Variable> variables,
                                                const std::tm& now,
                                                const Limits& limits = {}) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::jinja
