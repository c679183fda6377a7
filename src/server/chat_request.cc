#include "server/chat_request.h"

namespace winnow {

namespace json = boost::json;

Result<bool> tools_shown(const json::object& request) {
  const json::value* choice = RequestFields(request).find("tool_choice");
  if (choice == nullptr) return true;
  if (choice->is_string() && choice->get_string() == "auto") return true;
  if (choice->is_string() && choice->get_string() == "none") return false;
  return fail(ErrorCode::kUnsupported, "tool_choice: expected \"auto\" or \"none\", found %s",
              shown_json(*choice).c_str());
}

Status refuse_constraints(const json::object& request) {
  const RequestFields fields(request);
  if (const json::object* format = fields.object("response_format")) {
    const json::value* type = RequestFields(*format).find("type");
    if (type == nullptr || !type->is_string() || type->get_string() != "text") {
      return fail(ErrorCode::kUnsupported, "response_format.type: expected \"text\", found %s",
                  type == nullptr ? "none" : shown_json(*type).c_str());
    }
  }
  for (const char* name : {"grammar", "json_schema"}) {
    const json::value* value = fields.find(name);
    if (value == nullptr) continue;
    return fail(ErrorCode::kUnsupported, "%s: expected none, found %s", name,
                shown_json(*value).c_str());
  }
  return Ok{};
}

Result<ChatRequest> read_chat_prompt(const json::object& request) {
  const RequestFields fields(request);
  ChatRequest chat;
  const json::array* messages = fields.list("messages");
  if (messages == nullptr || messages->empty()) {
    return fail(ErrorCode::kInvalidArgument, "messages: expected at least one message, found none");
  }
  chat.messages = *messages;
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
  TRY(const bool shown, tools_shown(request));
  if (const json::array* tools = fields.list("tools"); tools != nullptr && shown) {
    for (const json::value& tool : *tools) {
      if (tool.is_object()) continue;
      return fail(ErrorCode::kInvalidArgument, "tools: expected objects, found %s",
                  shown_json(tool).c_str());
    }
    chat.prompt.tools = *tools;
    chat.tools_offered = !tools->empty();
  }
  return chat;
}

Result<ChatRequest> read_chat_request(const json::object& request, const SettingsContext& context) {
  TRY_STATUS(refuse_constraints(request));
  TRY(ChatRequest chat, read_chat_prompt(request));
  TRY(chat.settings, read_settings(request, kChat, context));
  return chat;
}

}  // namespace winnow
