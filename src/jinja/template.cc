#include "jinja/template.h"

#include "jinja/ast.h"
#include "jinja/errors.h"
#include "jinja/evaluator.h"
#include "jinja/globals.h"
#include "jinja/lexer.h"
#include "jinja/parser.h"

namespace winnow::jinja {
namespace {

constexpr size_t kMaxSourceBytes = size_t{4} << 20;

Error to_error(const TemplateError& error) {
  if (error.line == kRaisedByTemplate) return fail(error.code, "%s", error.message.c_str());
  return fail(error.code, "chat template, line %d: %s", error.line, error.message.c_str());
}

}  // namespace

struct Template::Impl {
  Body body;
};

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::~Template() = default;
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;

Result<Template> Template::parse(std::string_view source) {
  if (source.size() > kMaxSourceBytes) {
    return fail(ErrorCode::kUnsupported, "chat template: %zu bytes, expected at most %zu",
                source.size(), kMaxSourceBytes);
  }
  try {
    auto impl = std::make_unique<Impl>();
    impl->body = Parser(tokenize(source)).parse_template();
    return Template(std::move(impl));
  } catch (const TemplateError& error) {
    return to_error(error);
  }
}

std::variant<Rendering, RenderFailure> Template::render(std::span<const Variable> variables,
                                                        const std::tm& now,
                                                        const Limits& limits) const {
  size_t weight = 0;
  for (const Variable& variable : variables) weight += variable.value.weight();
  Runtime runtime(limits.with_data(weight), now);
  try {
    auto globals = std::make_shared<Scope>(nullptr);
    add_globals(*globals);
    for (const Variable& variable : variables) globals->set(variable.name, variable.value);
    auto scope = std::make_shared<Scope>(globals);
    Text out;
    Evaluator(runtime, scope).run(impl_->body, out);
    return Rendering{std::move(out).take(), runtime.notes()};
  } catch (const TemplateError& error) {
    return RenderFailure{to_error(error), error.line == kRaisedByTemplate};
  }
}

}  // namespace winnow::jinja
