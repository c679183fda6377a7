#include "server/chat_request.h"

namespace winnow {

namespace json = boost::json;

bool tools_shown(const json::object& request) {
  const json::value* choice = RequestFields(request).find("tool_choice");
  return choice == nullptr || !choice->is_string() || choice->get_string() != "none";
}

Result<ChatRequest> read_chat_prompt(const json::object& request, Endpoint endpoint) {
  const RequestFields fields(request, endpoint);
  ChatRequest chat;
  const json::array* messages = fields.list("messages");
  if (messages == nullptr || messages->empty()) {
    return fail(ErrorCode::kInvalidArgument, "messages: expected at least one message, found none");
  }
  chat.messages = *messages;
  for (const char* name : {"response_format", "json_schema", "grammar", "tools", "tool_choice",
                           "parallel_tool_calls"}) {
    if (const json::value* value = fields.find(name)) chat.form[name] = *value;
  }
  if (fields.text("chat_template")) {
    return fail(ErrorCode::kUnsupported,
                "chat_template: expected none, since the model's own is used, found one");
  }
  chat.prompt.add_generation_prompt = fields.flag("add_generation_prompt").value_or(true);
  chat.prompt.continue_final_message = fields.flag("continue_final_message").value_or(false);
  if (chat.prompt.continue_final_message && fields.flag("add_generation_prompt").value_or(false)) {
    return fail(ErrorCode::kInvalidArgument,
                "continue_final_message: expected \"add_generation_prompt\": false beside it, "
                "found true");
  }
  if (const json::object* extra = fields.object("chat_template_kwargs")) chat.prompt.extra = *extra;
  if (const json::array* tools = fields.list("tools"); tools != nullptr && tools_shown(request)) {
    for (const json::value& tool : *tools) {
      if (tool.is_object()) continue;
      return fail(ErrorCode::kInvalidArgument, "tools: expected objects, found %s",
                  shown_json(tool).c_str());
    }
    chat.prompt.tools = *tools;
  }
  return chat;
}

Result<ChatRequest> read_chat_request(const json::object& request, const SettingsContext& context) {
  TRY(ChatRequest chat, read_chat_prompt(request, kChat));
  TRY(chat.settings, read_settings(request, kChat, context));
  return chat;
}

}  // namespace winnow
