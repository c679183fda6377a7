#include "constrain/call_body.h"

#include <algorithm>

namespace winnow {
namespace {

// Reads on from a place in the text; whatever is missing at the end of it may still come.
class BodyReader {
 public:
  BodyReader(std::string_view text, bool at_end) : text_(text), at_end_(at_end) {}

  std::string_view rest() const { return text_.substr(pos_); }
  void skip(size_t size) { pos_ += size; }
  void skip_blanks() { pos_ += num_blanks(rest()); }
  bool take(std::string_view mark) {
    if (!rest().starts_with(mark)) return false;
    skip(mark.size());
    return true;
  }
  CallBody none() const { return {}; }
  CallBody needs_more() const {
    return {at_end_ ? CallBody::Kind::kNone : CallBody::Kind::kNeedsMore};
  }
  // If `mark` is not here: whether it may come.
  CallBody missing(std::string_view mark) const {
    return may_become(rest(), mark) ? needs_more() : none();
  }
  CallBody whole(std::vector<ToolCall> calls) const {
    return {CallBody::Kind::kWhole, pos_, std::move(calls)};
  }
  bool may_come(std::string_view mark) const { return !at_end_ && may_become(rest(), mark); }

 private:
  std::string_view text_;
  bool at_end_;
  size_t pos_ = 0;
};

// JSON that tells names and arguments itself.
CallBody json_calls(BodyReader& reader) {
  reader.skip_blanks();
  if (reader.rest().empty()) return reader.needs_more();
  const JsonExtent extent = json_extent(reader.rest());
  if (extent.kind == JsonExtent::Kind::kNone) return reader.none();
  if (extent.kind == JsonExtent::Kind::kUnfinished) return reader.needs_more();
  auto calls = read_tool_calls(reader.rest().substr(0, extent.size));
  if (!calls) return reader.none();
  reader.skip(extent.size);
  return reader.whole(*std::move(calls));
}

CallBody tagged(BodyReader& reader) {
  CallBody body = json_calls(reader);
  if (body.kind != CallBody::Kind::kWhole) return body;
  reader.skip_blanks();
  if (reader.may_come(marker::kToolCallEnd)) return reader.needs_more();
  // The closing tag may be missing.
  return reader.take(marker::kToolCallEnd) ? reader.whole(std::move(body.calls)) : body;
}

bool is_function_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
}

size_t name_size(std::string_view text) {
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_function_name_byte) -
                             text.begin());
}

// The arguments of `name`, which was read before them.
CallBody arguments_of(std::string_view name, BodyReader& reader) {
  if (reader.rest().empty()) return reader.needs_more();
  const JsonExtent extent = json_extent(reader.rest());
  if (extent.kind == JsonExtent::Kind::kUnfinished) return reader.needs_more();
  const std::string_view arguments = reader.rest().substr(0, extent.size);
  if (name.empty() || extent.kind == JsonExtent::Kind::kNone || !is_json_object(arguments)) {
    return reader.none();
  }
  reader.skip(extent.size);
  return reader.whole({{std::string(name), std::string(arguments)}});
}

// Calls in JSON, or NAME{...}, or NAME[ARGS]{...}.
CallBody mistral(BodyReader& reader) {
  reader.skip_blanks();
  const std::string_view name = reader.rest().substr(0, name_size(reader.rest()));
  if (name.empty()) return json_calls(reader);
  reader.skip(name.size());
  if (!reader.take(marker::kMistralArguments) && reader.may_come(marker::kMistralArguments)) {
    return reader.needs_more();
  }
  return arguments_of(name, reader);
}

// function<sep>NAME, a line break and the arguments between fences of code; or NAME<sep>{...}.
CallBody deepseek(std::string_view opening, BodyReader& reader) {
  constexpr std::string_view kFence = "\n```json\n", kFenceEnd = "\n```";
  if (opening == marker::kDeepSeekCalls) {
    reader.skip_blanks();
    if (!reader.take(marker::kDeepSeekCall)) return reader.missing(marker::kDeepSeekCall);
  }
  std::string_view name = reader.rest().substr(0, name_size(reader.rest()));
  reader.skip(name.size());
  if (!reader.take(marker::kDeepSeekSeparator)) return reader.missing(marker::kDeepSeekSeparator);
  if (reader.rest().empty()) return reader.needs_more();
  const bool fenced = !reader.rest().starts_with('{');
  if (fenced) {
    name = reader.rest().substr(0, name_size(reader.rest()));
    reader.skip(name.size());
    if (!reader.take(kFence)) return reader.missing(kFence);
  }
  CallBody body = arguments_of(name, reader);
  if (body.kind != CallBody::Kind::kWhole) return body;
  if (fenced && !reader.take(kFenceEnd)) return reader.missing(kFenceEnd);
  if (!reader.take(marker::kDeepSeekCallEnd)) return reader.missing(marker::kDeepSeekCallEnd);
  return reader.whole(std::move(body.calls));
}

}  // namespace

size_t num_blanks(std::string_view text) {
  return std::min(text.find_first_not_of(" \n\r\t"), text.size());
}

bool may_become(std::string_view text, std::string_view mark) {
  return text.size() < mark.size() && mark.starts_with(text);
}

CallBody read_call_body(ToolCallStyle style, std::string_view opening, std::string_view text,
                        bool at_end) {
  BodyReader reader(text, at_end);
  switch (style) {
    case ToolCallStyle::kTagged:
      return tagged(reader);
    case ToolCallStyle::kMistral:
      return mistral(reader);
    case ToolCallStyle::kLlama:
    case ToolCallStyle::kGranite:
      return json_calls(reader);
    case ToolCallStyle::kDeepSeek:
      return deepseek(opening, reader);
    case ToolCallStyle::kNone:
    case ToolCallStyle::kHarmony:
      break;
  }
  return {};
}

}  // namespace winnow
