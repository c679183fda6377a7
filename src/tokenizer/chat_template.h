// ChatTemplate: the model's own Jinja template, applied to a conversation.
#pragma once

#include <boost/json/value.hpp>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "jinja/rendered_text.h"

namespace winnow {

struct ChatTemplateInput {
  boost::json::array messages;  // OpenAI message objects: role, content, tool_calls, ...
  boost::json::array tools;     // OpenAI tool objects; empty = none (None in the template)
  boost::json::object extra;    // further template variables (chat_template_kwargs)
  bool add_generation_prompt = true;
  std::string bos_token;  // pieces of the tokenizer; empty if it has none
  std::string eos_token;
  std::optional<std::tm> now;  // what strftime_now shows; nothing = local time
};

class ChatTemplate {
 public:
  // kUnsupported with line and construct if the template uses what the interpreter does not know.
  static Result<ChatTemplate> parse(std::string_view source);
  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // kInvalidArgument with the template's own words if it calls raise_exception. Text from
  // `messages`, `tools` and `extra` is data: it lies outside template_spans. The one exception is a
  // message's role if it is one of the well-known ones, because templates build control tokens from
  // it ('<|' + role + '|>'). Messages are given the form that the template can use: arguments of
  // tool calls become objects, or text for templates that concatenate them; null content stays or
  // becomes empty; text parts stay or are joined.
  Result<RenderedText> render(const ChatTemplateInput& input) const;

 private:
  struct Impl;
  explicit ChatTemplate(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
