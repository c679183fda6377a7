#include "server/response_request.h"

#include <string>

namespace winnow {
namespace {

namespace json = boost::json;

Error bad_input(size_t idx, std::string_view expected, const json::value& found) {
  return fail(ErrorCode::kInvalidArgument, "input[%zu]: expected %s, found %s", idx,
              std::string(expected).c_str(), shown_json(found).c_str());
}

std::string text_member(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// The text of a content: a string, or a list of parts with text.
Result<std::string> content_text(size_t idx, const json::value* content) {
  if (content == nullptr || content->is_null()) return std::string();
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) return bad_input(idx, "content as a string or a list", *content);
  std::string text;
  for (const json::value& part : content->get_array()) {
    const json::object* object = part.if_object();
    const std::string type = object == nullptr ? std::string() : text_member(*object, "type");
    const bool known = type == "input_text" || type == "output_text" || type == "text";
    if (!known) return bad_input(idx, "parts of text", part);
    text += text_member(*object, "text");
  }
  return text;
}

// Puts a conversation together, item by item.
class Conversation {
 public:
  void add_system(const std::string& text) {
    if (text.empty()) return;
    if (!system_.empty()) system_ += "\n\n";
    system_ += text;
  }

  Status add(size_t idx, const json::value& item) {
    const json::object* object = item.if_object();
    if (object == nullptr) return bad_input(idx, "an object", item);
    const std::string type = text_member(*object, "type");
    if (type.empty() || type == "message") return add_message(idx, *object);
    if (type == "function_call") {
      add_call(*object);
    } else if (type == "function_call_output") {
      TRY(std::string output, content_text(idx, object->if_contains("output")));
      messages_.push_back(json::object{{"role", "tool"},
                                       {"tool_call_id", text_member(*object, "call_id")},
                                       {"content", std::move(output)}});
    }
    return Ok{};
  }

  json::array take() {
    json::array all;
    if (!system_.empty()) all.push_back(chat_message("system", system_));
    for (json::value& message : messages_) all.push_back(std::move(message));
    return all;
  }

 private:
  Status add_message(size_t idx, const json::object& item) {
    const std::string role = text_member(item, "role");
    TRY(const std::string text, content_text(idx, item.if_contains("content")));
    if (role == "system" || role == "developer") {
      add_system(text);
    } else if (role == "user" || role == "assistant") {
      messages_.push_back(chat_message(role, text));
    } else {
      return bad_input(idx, "a role of user, assistant, system or developer", json::value(role));
    }
    return Ok{};
  }

  // Calls belong to the assistant's message before them.
  void add_call(const json::object& item) {
    const bool follows = !messages_.empty() && messages_.back().at("role") == "assistant";
    if (!follows) messages_.push_back(json::object{{"role", "assistant"}, {"content", nullptr}});
    json::object& message = messages_.back().get_object();
    json::value& calls = message["tool_calls"];
    if (!calls.is_array()) calls = json::array();
    calls.get_array().push_back(
        {{"id", text_member(item, "call_id")},
         {"type", "function"},
         {"function",
          {{"name", text_member(item, "name")}, {"arguments", text_member(item, "arguments")}}}});
  }

  std::string system_;
  json::array messages_;
};

Result<json::array> read_messages(const RequestFields& fields) {
  Conversation conversation;
  conversation.add_system(fields.text("instructions").value_or(""));
  const json::value* input = fields.find("input");
  if (input == nullptr || !(input->is_string() || input->is_array())) {
    return fail(ErrorCode::kInvalidArgument, "input: expected a string or a list, found %s",
                input == nullptr ? "none" : shown_json(*input).c_str());
  }
  if (input->is_string()) {
    TRY_STATUS(conversation.add(
        0, chat_message("user", {input->get_string().data(), input->get_string().size()})));
  } else {
    const json::array& items = input->get_array();
    for (size_t i = 0; i < items.size(); ++i) TRY_STATUS(conversation.add(i, items[i]));
  }
  json::array messages = conversation.take();
  if (messages.empty()) {
    return fail(ErrorCode::kInvalidArgument, "input: expected at least one message, found none");
  }
  return messages;
}

// Functions alone, in the form that chat templates know.
json::array function_tools(const json::array& tools) {
  json::array functions;
  for (const json::value& tool : tools) {
    const json::object* object = tool.if_object();
    if (object == nullptr || text_member(*object, "type") != "function") continue;
    json::object function;
    for (const char* name : {"name", "description", "parameters", "strict"}) {
      const json::value* value = object->if_contains(name);
      if (value != nullptr && !value->is_null()) function[name] = *value;
    }
    functions.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return functions;
}

// The form of the answer in the fields of a chat request.
json::object chat_form(const RequestFields& fields, const json::array& tools) {
  json::object form;
  const json::object* text = fields.object("text");
  const json::object* format = text == nullptr ? nullptr : RequestFields(*text).object("format");
  if (format != nullptr) {
    json::object inner = *format;
    inner.erase("type");
    form["response_format"] = {{"type", text_member(*format, "type")}};
    if (!inner.empty()) form["response_format"].as_object()["json_schema"] = std::move(inner);
  }
  if (!tools.empty()) form["tools"] = tools;
  if (const json::value* choice = fields.find("tool_choice")) {
    form["tool_choice"] = *choice;
    if (const json::object* named = choice->if_object()) {
      form["tool_choice"] = {{"type", "function"},
                             {"function", {{"name", text_member(*named, "name")}}}};
    }
  }
  if (const json::value* parallel = fields.find("parallel_tool_calls")) {
    form["parallel_tool_calls"] = *parallel;
  }
  return form;
}

}  // namespace

Result<ChatRequest> read_response_request(const json::object& request,
                                          const SettingsContext& context) {
  const RequestFields fields(request, kResponses);
  if (fields.text("previous_response_id")) {
    return fail(ErrorCode::kUnsupported,
                "previous_response_id: expected none, since responses are not stored, found one");
  }
  ChatRequest chat;
  TRY(chat.messages, read_messages(fields));
  json::array tools;
  if (const json::array* offered = fields.list("tools")) tools = function_tools(*offered);
  chat.form = chat_form(fields, tools);
  if (tools_shown(request)) chat.prompt.tools = std::move(tools);
  TRY(chat.settings, read_settings(request, kResponses, context));
  return chat;
}

}  // namespace winnow
