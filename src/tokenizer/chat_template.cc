#include "tokenizer/chat_template.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "base/escape.h"
#include "jinja/build.h"
#include "jinja/template.h"
#include "tokenizer/chat_messages.h"

namespace winnow {
namespace {

using jinja::RenderFailure;
using jinja::Rendering;
using jinja::Value;
using jinja::Variable;
using Outcome = std::variant<Rendering, RenderFailure>;

std::tm local_time() {
  const std::time_t seconds = std::time(nullptr);
  std::tm now{};
  localtime_r(&seconds, &now);
  return now;
}

Result<Variable> json_variable(std::string_view name, const boost::json::value& json) {
  auto value = jinja::from_json(json);
  if (!value.ok()) {
    return fail(value.error().code, "template variable '%s': %s", escaped(name, 80).c_str(),
                value.error().message.c_str());
  }
  return Variable{std::string(name), std::move(value).value()};
}

// Everything but the messages.
Result<std::vector<Variable>> make_variables(const ChatTemplateInput& input) {
  std::vector<Variable> variables = {{"documents", jinja::None{}}};
  for (const auto& member : input.extra) {
    TRY(Variable variable, json_variable(member.key(), member.value()));
    variables.push_back(std::move(variable));
  }
  Variable tools{"tools", jinja::None{}};
  if (!input.tools.empty()) {
    TRY(tools, json_variable("tools", input.tools));
  }
  variables.push_back(std::move(tools));
  variables.push_back({"add_generation_prompt", input.add_generation_prompt});
  variables.push_back({"bos_token", Value::template_text(input.bos_token)});
  variables.push_back({"eos_token", Value::template_text(input.eos_token)});
  return variables;
}

// The forms worth trying, most faithful first.
std::vector<MessageForm> candidate_forms(const MessageTraits& traits, bool text_as_parts) {
  std::vector<MessageForm> forms;
  for (const bool parts_joined : {false, true}) {
    for (const bool null_as_empty : {false, true}) {
      for (const bool arguments_as_text : {false, true}) {
        const bool differs = (!parts_joined || traits.has_parts) &&
                             (!null_as_empty || traits.has_null_content) &&
                             (!arguments_as_text || traits.has_arguments);
        if (differs)
          forms.push_back({arguments_as_text, null_as_empty, parts_joined, text_as_parts});
      }
    }
  }
  return forms;
}

// A template that printed Python's notation of a list or of None was not made for the form it got.
bool is_clean(const Rendering& rendering, const MessageTraits& traits) {
  const bool odd_none = rendering.notes.printed_none && traits.has_null_content;
  const bool odd_container =
      rendering.notes.printed_container && (traits.has_parts || traits.has_arguments);
  return !odd_none && !odd_container;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Template source;
  bool wants_parts = false;  // reads content only as a list of parts

  Outcome render(std::vector<Variable> variables, Value messages, const std::tm& now,
                 const jinja::Limits& limits = {}) const {
    variables.push_back({"messages", std::move(messages)});
    return source.render(variables, now, limits);
  }
  // Whether the content of a lone user message reaches the output.
  bool shows_content(const MessageForm& form) const;
};

bool ChatTemplate::Impl::shows_content(const MessageForm& form) const {
  static constexpr std::string_view kNeedle = "8d1f-needle-c07e";
  ChatTemplateInput probe;
  probe.messages.push_back(boost::json::object{{"role", "user"}, {"content", kNeedle}});
  const auto variables = make_variables(probe);
  const auto messages = to_template_messages(probe.messages, form);
  if (!variables.ok() || !messages.ok()) return false;
  // One short message takes a good template far less.
  const jinja::Limits limits{.max_steps = 200'000,
                             .max_output_bytes = size_t{1} << 20,
                             .max_created_bytes = size_t{4} << 20};
  const Outcome outcome = render(*variables, *messages, std::tm{}, limits);
  const Rendering* rendering = std::get_if<Rendering>(&outcome);
  return rendering && rendering->output.text.find(kNeedle) != std::string::npos;
}

ChatTemplate::ChatTemplate(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  TRY(jinja::Template parsed, jinja::Template::parse(source));
  auto impl = std::make_unique<Impl>(Impl{std::move(parsed)});
  impl->wants_parts = !impl->shows_content({}) && impl->shows_content({.text_as_parts = true});
  return ChatTemplate(std::move(impl));
}

Result<RenderedText> ChatTemplate::render(const ChatTemplateInput& input) const {
  TRY(const MessageTraits traits, check_messages(input.messages));
  TRY(const std::vector<Variable> variables, make_variables(input));
  const std::tm now = input.now ? *input.now : local_time();
  std::optional<Rendering> fallback;
  std::optional<Error> first_error;
  bool raised = false;
  for (const MessageForm& form : candidate_forms(traits, impl_->wants_parts)) {
    TRY(Value messages, to_template_messages(input.messages, form));
    Outcome outcome = impl_->render(variables, std::move(messages), now);
    if (RenderFailure* failure = std::get_if<RenderFailure>(&outcome)) {
      // What the template itself has to say helps the caller most.
      if (!first_error || (failure->raised_by_template && !raised)) {
        first_error = std::move(failure->error);
        raised = failure->raised_by_template;
      }
      continue;
    }
    Rendering& rendering = std::get<Rendering>(outcome);
    if (is_clean(rendering, traits)) return std::move(rendering.output);
    if (!fallback) fallback = std::move(rendering);
  }
  if (fallback) return std::move(fallback->output);
  return std::move(*first_error);
}

}  // namespace winnow
