// Callable: what a template may call. Macros, methods bound to a value, and the few global
// functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace winnow::jinja {

class Runtime;

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Callable {
 public:
  virtual ~Callable() = default;
  virtual Value call(Runtime& runtime, Args args) const = 0;
  virtual std::string_view name() const = 0;
  // Nesting of the values it holds on to, plus one.
  virtual int depth() const { return 0; }
};

// Hands out a call's arguments by position or name, as the signature of a function, method or
// filter would.
class ArgReader {
 public:
  ArgReader(std::string_view function, const Args& args);

  // The argument at the next position, or named `name`; null if it was not given.
  const Value* optional(std::string_view name);
  // Fails if it was not given.
  const Value& required(std::string_view name);
  // Fails if arguments are left that nothing asked for.
  void finish() const;

  Int integer_or(std::string_view name, Int fallback);
  bool truth_or(std::string_view name, bool fallback);
  // Fails if it is present and not text.
  const Text* text_or_null(std::string_view name);

 private:
  std::string_view function_;
  const Args& args_;
  size_t next_position_ = 0;
  size_t num_named_used_ = 0;
};

}  // namespace winnow::jinja
