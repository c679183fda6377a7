// ChatRequest: the body of a chat completion, read and turned into token ids.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <vector>

#include "server/generation_settings.h"
#include "tokenizer/chat_prompt.h"

namespace winnow {

struct ChatRequest {
  GenerationSettings settings;
  boost::json::array messages;
  ChatPromptOptions prompt;
  bool tools_offered = false;  // the answer may call them
};

// Requires that check_fields passed. kInvalidArgument naming a field; kUnsupported for a format of
// the answer that cannot be enforced.
Result<ChatRequest> read_chat_request(const boost::json::object& request,
                                      const SettingsContext& context);

// What of a chat request shapes the prompt, for endpoints that only render it.
Result<ChatRequest> read_chat_prompt(const boost::json::object& request);

// Whether the template is shown the tools. kUnsupported for a `tool_choice` that would have to be
// enforced.
Result<bool> tools_shown(const boost::json::object& request);

// kUnsupported if `request` asks for JSON, a schema or a grammar.
Status refuse_constraints(const boost::json::object& request);

}  // namespace winnow
