#include "constrain/tool_call_text.h"

#include <boost/json.hpp>

namespace winnow {
namespace {

namespace json = boost::json;

constexpr size_t kMaxDepth = 64;

std::optional<json::value> parsed(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::system::error_code error;
  json::value value = json::parse(text, error, {}, options);
  if (error) return std::nullopt;
  return value;
}

size_t string_end(std::string_view text, size_t begin) {
  size_t i = begin + 1;
  while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2 : 1;
  return i + 1;
}

// Text of each member's value in a valid object, or of each item of a valid array, in order.
std::vector<std::string_view> value_texts(std::string_view text) {
  std::vector<std::string_view> values;
  size_t depth = 0, begin = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (byte == '"') {
      i = string_end(text, i) - 1;
      continue;
    }
    const bool closes = byte == '}' || byte == ']';
    if ((byte == ',' && depth == 1) || (closes && depth == 1)) {
      values.push_back(text.substr(begin, i - begin));
    }
    if ((byte == ':' || byte == ',') && depth == 1) begin = i + 1;
    if (byte == '{' || byte == '[') ++depth;
    if (closes) --depth;
  }
  return values;
}

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kTrimmed = " \n\r\t";
  const size_t begin = text.find_first_not_of(kTrimmed);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kTrimmed) - begin + 1);
}

// Requires that `text` is the text of `object`.
std::optional<ToolCall> read_call(const json::object& object, std::string_view text) {
  const json::value* name = object.if_contains("name");
  if (name == nullptr || !name->is_string() || name->get_string().empty()) return std::nullopt;
  ToolCall call{std::string(name->get_string()), "{}"};
  const std::vector<std::string_view> texts = value_texts(text);
  // Names given twice make one member of several texts.
  if (texts.size() != object.size()) return std::nullopt;
  size_t i = 0;
  for (const auto& member : object) {
    const std::string_view written = without_blanks(texts[i++]);
    if (member.key() != "arguments" && member.key() != "parameters") continue;
    if (const json::string* quoted = member.value().if_string()) {
      call.arguments = std::string(*quoted);
      if (!is_json_object(call.arguments)) return std::nullopt;
    } else if (member.value().is_object()) {
      call.arguments = std::string(written);
    } else {
      return std::nullopt;
    }
  }
  return call;
}

}  // namespace

JsonExtent json_extent(std::string_view text) {
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return {};
  std::string closers;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (byte == '"') {
      i = string_end(text, i) - 1;
    } else if (byte == '{' || byte == '[') {
      closers += byte == '{' ? '}' : ']';
      if (closers.size() > kMaxDepth) return {};
    } else if (byte == '}' || byte == ']') {
      if (byte != closers.back()) return {};
      closers.pop_back();
      if (closers.empty()) return {JsonExtent::Kind::kWhole, i + 1};
    }
  }
  return {JsonExtent::Kind::kUnfinished, text.size()};
}

bool is_json_object(std::string_view text) {
  const auto value = parsed(text);
  return value && value->is_object();
}

std::optional<std::vector<ToolCall>> read_tool_calls(std::string_view text) {
  text = without_blanks(text);
  const auto value = parsed(text);
  if (!value) return std::nullopt;
  std::vector<ToolCall> calls;
  if (const json::object* object = value->if_object()) {
    auto call = read_call(*object, text);
    if (!call) return std::nullopt;
    calls.push_back(*std::move(call));
  } else if (const json::array* array = value->if_array(); array && !array->empty()) {
    const std::vector<std::string_view> texts = value_texts(text);
    for (size_t i = 0; i < array->size(); ++i) {
      const json::object* item = (*array)[i].if_object();
      if (item == nullptr) return std::nullopt;
      auto call = read_call(*item, without_blanks(texts[i]));
      if (!call) return std::nullopt;
      calls.push_back(*std::move(call));
    }
  } else {
    return std::nullopt;
  }
  return calls;
}

std::string tool_call_id(uint64_t seed, int32_t index) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  uint64_t bits = seed + 0x9E3779B97F4A7C15 * (static_cast<uint64_t>(index) + 1);
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  bits ^= bits >> 31;
  std::string id;
  for (int i = 0; i < 9; ++i, bits /= kLetters.size()) id += kLetters[bits % kLetters.size()];
  return id;
}

}  // namespace winnow
