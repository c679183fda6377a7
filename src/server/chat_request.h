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
  boost::json::object form;  // what the answer must look like, in the fields of a chat request
};

// Requires that check_fields passed. kInvalidArgument or kUnsupported naming a field.
Result<ChatRequest> read_chat_request(const boost::json::object& request,
                                      const SettingsContext& context);

// What of a chat request shapes the prompt, for endpoints that only render it.
Result<ChatRequest> read_chat_prompt(const boost::json::object& request, Endpoint endpoint);

// Whether the template is shown the tools of `request`.
bool tools_shown(const boost::json::object& request);

}  // namespace winnow
