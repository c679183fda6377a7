#include "jinja/globals.h"

#include <ctime>

#include "jinja/callable.h"
#include "jinja/errors.h"
#include "jinja/operators.h"
#include "jinja/stringify.h"

namespace winnow::jinja {
namespace {

// The bound of Jinja's sandbox.
constexpr Int kMaxRange = 100'000;

class Function : public Callable {
 public:
  using Body = Value (*)(Runtime& runtime, const Args& args);
  Function(std::string_view name, Body body) : name_(name), body_(body) {}
  Value call(Runtime& runtime, Args args) const override { return body_(runtime, args); }
  std::string_view name() const override { return name_; }

 private:
  std::string_view name_;
  Body body_;
};

Int range_bound(const Value& value) {
  require_defined(value);
  const auto number = value.integer();
  if (!number) {
    fail_render("'" + std::string(type_name(value)) +
                "' object cannot be interpreted as an integer");
  }
  return *number;
}

Value range_function(Runtime& runtime, const Args& args) {
  const auto& given = args.positional;
  if (given.empty() || given.size() > 3 || !args.named.empty())
    fail_render("range() takes 1 to 3 arguments");
  const Int start = given.size() > 1 ? range_bound(given[0]) : 0;
  const Int stop = range_bound(given.size() > 1 ? given[1] : given[0]);
  const Int step = given.size() > 2 ? range_bound(given[2]) : 1;
  if (step == 0) fail_render("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (Int i = start; step > 0 ? i < stop : i > stop; i += step) {
    runtime.step();
    if (static_cast<Int>(items.size()) >= kMaxRange) {
      fail_render("Range too big. The sandbox blocks ranges larger than MAX_RANGE (" +
                  int_to_string(kMaxRange) + ").");
    }
    items.push_back(Value(i));
  }
  return make_list(std::move(items), ListKind::kRange);
}

Dict dict_from(Runtime& runtime, const Args& args) {
  Dict dict;
  if (args.positional.size() > 1) fail_render("dict expected at most 1 argument");
  if (!args.positional.empty()) {
    const Value& source = args.positional[0];
    if (source.dict()) {
      dict = *source.dict();
      runtime.step(dict.entries.size());
    } else {
      for (const Value& pair : iterate(runtime, source)) {
        const std::vector<Value> parts = iterate(runtime, pair);
        if (parts.size() != 2)
          fail_render("dictionary update sequence elements must have length 2");
        runtime.step(parts[0].text() ? 1 : dict.entries.size());
        dict.set(parts[0], parts[1]);
      }
    }
  }
  for (const auto& [name, value] : args.named) dict.set(Value::template_text(name), value);
  return dict;
}

Value dict_function(Runtime& runtime, const Args& args) {
  return Value(std::shared_ptr<const Dict>(std::make_shared<Dict>(dict_from(runtime, args))));
}

Value namespace_function(Runtime& runtime, const Args& args) {
  return runtime.make_namespace(dict_from(runtime, args));
}

Value raise_exception(Runtime& runtime, const Args& args) {
  ArgReader reader("raise_exception", args);
  const Text message = to_text(runtime, reader.required("message"));
  reader.finish();
  throw TemplateError{ErrorCode::kInvalidArgument, std::string(message.view()), kRaisedByTemplate};
}

Value strftime_now(Runtime& runtime, const Args& args) {
  ArgReader reader("strftime_now", args);
  const Text* format = reader.text_or_null("format");
  reader.finish();
  if (!format || format->size() > 1000)
    fail_render("strftime_now() needs a format of at most 1000 bytes");
  if (format->empty()) return Value(Text());
  // A leading character tells an empty result from a buffer too small.
  const std::string padded = "." + std::string(format->view());
  std::string out(64 * padded.size() + 256, '\0');
  const std::tm now = runtime.now();
  const size_t size = std::strftime(out.data(), out.size(), padded.c_str(), &now);
  out.resize(size);
  if (!out.empty()) out.erase(0, 1);
  return runtime.make_text(Text(std::move(out), format->origin()));
}

// Empty at the first call, the separator at every other.
class Joiner : public Callable {
 public:
  explicit Joiner(Text separator) : separator_(std::move(separator)) {}
  Value call(Runtime& runtime, Args args) const override {
    ArgReader("joiner", args).finish();
    return std::exchange(used_, true) ? runtime.make_text(separator_) : Value(Text());
  }
  std::string_view name() const override { return "joiner"; }

 private:
  Text separator_;
  mutable bool used_ = false;
};

Value joiner_function(Runtime&, const Args& args) {
  ArgReader reader("joiner", args);
  const Text* separator = reader.text_or_null("sep");
  reader.finish();
  return Value(std::shared_ptr<const Callable>(
      std::make_shared<Joiner>(separator ? *separator : Text(", ", Origin::kTemplate))));
}

}  // namespace

void add_globals(Scope& scope) {
  static constexpr std::pair<std::string_view, Function::Body> kFunctions[] = {
      {"range", range_function},         {"dict", dict_function},
      {"namespace", namespace_function}, {"raise_exception", raise_exception},
      {"strftime_now", strftime_now},    {"joiner", joiner_function},
  };
  for (const auto& [name, body] : kFunctions) {
    scope.set(name, Value(std::shared_ptr<const Callable>(std::make_shared<Function>(name, body))));
  }
}

}  // namespace winnow::jinja
