#include "tokenizer/chat_messages.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>

#include "jinja/build.h"

namespace winnow {
namespace {

namespace json = boost::json;
using jinja::Origin;
using jinja::Text;
using jinja::Value;

bool is_well_known_role(std::string_view role) {
  static constexpr std::string_view kRoles[] = {
      "system", "user",    "assistant", "tool",      "developer",
      "model",  "context", "function",  "documents", "tool_response"};
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

Status check_parts(const json::array& parts, size_t message_idx) {
  for (size_t i = 0; i < parts.size(); ++i) {
    const json::object* part = parts[i].if_object();
    const json::value* type = part ? part->if_contains("type") : nullptr;
    const json::value* text = part ? part->if_contains("text") : nullptr;
    if (type && (!type->is_string() || type->get_string() != "text")) {
      const std::string found = json::serialize(*type);
      return fail(ErrorCode::kUnsupported,
                  "messages[%zu].content[%zu].type: expected \"text\", found %.40s", message_idx, i,
                  found.c_str());
    }
    if (!text || !text->is_string()) {
      return fail(ErrorCode::kInvalidArgument,
                  "messages[%zu].content[%zu]: expected {\"type\": \"text\", \"text\": string}",
                  message_idx, i);
    }
  }
  return Ok{};
}

bool has_tool_arguments(const json::object& message) {
  const json::value* calls = message.if_contains("tool_calls");
  return calls && calls->is_array() && !calls->get_array().empty();
}

// The object that argument text stands for; nothing if it is no JSON object.
std::optional<json::value> parsed_arguments(const json::string& text) {
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; })) {
    return json::object();
  }
  json::error_code error;
  json::parse_options options;
  options.max_depth = 64;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error || !value.is_object()) return std::nullopt;
  return value;
}

using Entries = std::vector<std::pair<Value, Value>>;

Value template_key(std::string_view key) { return Value::template_text(key); }
Value data_text(std::string bytes) { return Value(Text(std::move(bytes), Origin::kData)); }

Result<Value> arguments_value(const json::value& arguments, const MessageForm& form) {
  if (form.arguments_as_text) {
    if (arguments.is_string()) return data_text(std::string(arguments.get_string()));
    TRY(std::string text, jinja::python_json(arguments));
    return data_text(std::move(text));
  }
  if (!arguments.is_string()) return jinja::from_json(arguments);
  const auto parsed = parsed_arguments(arguments.get_string());
  return jinja::from_json(parsed ? *parsed : arguments);
}

// A tool call, or its `function`: the same thing again with its arguments in the right form.
Result<Value> tool_call_value(const json::value& call, const MessageForm& form) {
  if (!call.is_object()) return jinja::from_json(call);
  Entries entries;
  for (const auto& member : call.get_object()) {
    const auto convert = [&]() -> Result<Value> {
      if (member.key() == "arguments") return arguments_value(member.value(), form);
      if (member.key() == "function") return tool_call_value(member.value(), form);
      return jinja::from_json(member.value());
    };
    TRY(Value value, convert());
    entries.emplace_back(data_text(member.key()), std::move(value));
  }
  return jinja::build_dict(std::move(entries));
}

Result<Value> tool_calls_value(const json::array& calls, const MessageForm& form) {
  std::vector<Value> items;
  for (const json::value& call : calls) {
    TRY(Value item, tool_call_value(call, form));
    items.push_back(std::move(item));
  }
  return jinja::build_list(std::move(items));
}

Result<Value> text_part(const json::string& text) {
  TRY(Value part, jinja::build_dict({{template_key("type"), Value::template_text("text")},
                                     {template_key("text"), data_text(std::string(text))}}));
  return jinja::build_list({std::move(part)});
}

Result<Value> content_value(const json::value* content, const MessageForm& form) {
  if (!content || content->is_null()) {
    return form.null_as_empty ? Value(Text()) : Value(jinja::None{}).with_origin(Origin::kData);
  }
  if (content->is_string() && form.text_as_parts) return text_part(content->get_string());
  if (content->is_array() && form.parts_joined) {
    std::string joined;
    for (const json::value& part : content->get_array()) joined += part.at("text").get_string();
    return data_text(std::move(joined));
  }
  return jinja::from_json(*content);
}

Value role_value(const json::string& role) {
  return Value(
      Text(std::string(role), is_well_known_role(role) ? Origin::kTemplate : Origin::kData));
}

// Reasoning goes by several names; templates read the first two of these.
Status add_reasoning(const json::object& message, Entries& entries) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const json::value* reasoning = message.if_contains(name);
    if (!reasoning || reasoning->is_null()) continue;
    TRY(const Value value, jinja::from_json(*reasoning));
    const json::value* thinking = message.if_contains("thinking");
    if (!thinking || thinking->is_null()) entries.emplace_back(template_key("thinking"), value);
    entries.emplace_back(template_key("reasoning_content"), value);
    return Ok{};
  }
  return Ok{};
}

Result<Value> message_value(const json::object& message, const MessageForm& form) {
  Entries entries;
  for (const auto& member : message) {
    const std::string_view key = member.key();
    const json::value& value = member.value();
    const bool no_calls = key == "tool_calls" && value.is_array() && value.get_array().empty();
    if (key == "content" || value.is_null() || no_calls) continue;
    if (key == "role") {
      TRY(Value content, content_value(message.if_contains("content"), form));
      entries.emplace_back(template_key("role"), role_value(value.get_string()));
      entries.emplace_back(template_key("content"), std::move(content));
    } else if (key == "tool_calls" && value.is_array()) {
      TRY(Value calls, tool_calls_value(value.get_array(), form));
      entries.emplace_back(template_key(key), std::move(calls));
    } else {
      TRY(Value converted, jinja::from_json(value));
      entries.emplace_back(data_text(std::string(key)), std::move(converted));
    }
  }
  TRY_STATUS(add_reasoning(message, entries));
  return jinja::build_dict(std::move(entries));
}

}  // namespace

Result<MessageTraits> check_messages(const json::array& messages) {
  MessageTraits traits;
  for (size_t i = 0; i < messages.size(); ++i) {
    const json::object* message = messages[i].if_object();
    if (!message) return fail(ErrorCode::kInvalidArgument, "messages[%zu]: expected an object", i);
    const json::value* role = message->if_contains("role");
    if (!role || !role->is_string()) {
      return fail(ErrorCode::kInvalidArgument, "messages[%zu].role: expected a string", i);
    }
    const json::value* content = message->if_contains("content");
    if (!content || content->is_null()) {
      traits.has_null_content = true;
    } else if (content->is_array()) {
      traits.has_parts = true;
      TRY_STATUS(check_parts(content->get_array(), i));
    } else if (!content->is_string()) {
      return fail(ErrorCode::kInvalidArgument,
                  "messages[%zu].content: expected a string, a list of parts or null", i);
    }
    traits.has_arguments |= has_tool_arguments(*message);
  }
  return traits;
}

Result<Value> to_template_messages(const json::array& messages, const MessageForm& form) {
  std::vector<Value> items;
  for (size_t i = 0; i < messages.size(); ++i) {
    auto item = message_value(messages[i].get_object(), form);
    if (!item.ok()) {
      return fail(item.error().code, "messages[%zu]: %s", i, item.error().message.c_str());
    }
    items.push_back(std::move(item).value());
  }
  auto list = jinja::build_list(std::move(items));
  if (!list.ok()) return fail(list.error().code, "messages: %s", list.error().message.c_str());
  return list;
}

}  // namespace winnow
