// Tool calls as models write them: JSON inside other text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow {

struct JsonExtent {
  enum class Kind {
    kNone,        // no array or object begins here
    kUnfinished,  // the text ends within it
    kWhole,       // text[0, size) is an array or object
  };
  Kind kind = Kind::kNone;
  size_t size = 0;
};

// The JSON array or object that `text` begins with. Does not recurse; the first wrong byte that
// shows it to be no JSON may be past `size`, so whoever uses it parses it.
JsonExtent json_extent(std::string_view text);

struct ToolCall {
  std::string name;
  std::string arguments;  // JSON text of an object, as it was written
};

// {"name": ..., "arguments" or "parameters": ...}, or an array of such; none if `text` is anything
// else. Arguments that are missing are {}; arguments in a string are taken out of it.
std::optional<std::vector<ToolCall>> read_tool_calls(std::string_view text);

// Whether `text` is one JSON object, whole.
bool is_json_object(std::string_view text);

// Nine letters and digits, which is what the strictest template accepts.
std::string tool_call_id(uint64_t seed, int32_t index);

}  // namespace winnow
