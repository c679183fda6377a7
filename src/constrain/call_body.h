// What follows the marker of a tool call, in the way of each family.
#pragma once

#include <string_view>
#include <vector>

#include "constrain/answer_format.h"
#include "constrain/tool_call_text.h"

namespace winnow {

struct CallBody {
  enum class Kind {
    kNone,       // this is no call
    kNeedsMore,  // the text ends before it is decided
    kWhole,      // text[0, size) holds `calls`
  };
  Kind kind = Kind::kNone;
  size_t size = 0;
  std::vector<ToolCall> calls = {};
};

// `text` follows `opening`, one of the family's markers (or nothing, of kLlama). At the end of the
// answer it is always decided. Requires a style of marked calls (not kNone, not kHarmony).
CallBody read_call_body(ToolCallStyle style, std::string_view opening, std::string_view text,
                        bool at_end);

// Bytes of blanks that `text` begins with.
size_t num_blanks(std::string_view text);

// Whether `text` may become `mark` or more: it is shorter and `mark` begins with it.
bool may_become(std::string_view text, std::string_view mark);

}  // namespace winnow
