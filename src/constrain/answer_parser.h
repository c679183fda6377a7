// AnswerParser: what an answer's text consists of. A model family writes reasoning and tool calls
// into its text; a parser takes them apart as the text comes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "constrain/answer_format.h"

namespace winnow {

struct ToolCallDelta {
  int32_t index = 0;
  std::string id = {};    // once, with the first delta of a call
  std::string name = {};  // likewise
  std::string arguments = {};
};

struct AnswerDelta {
  std::string reasoning = {};
  std::string content = {};
  std::vector<ToolCallDelta> tool_calls = {};

  bool empty() const { return reasoning.empty() && content.empty() && tool_calls.empty(); }
};

// The deltas of any split of a text, taken together, are those of the whole text. A call is told
// when it is complete, in one delta; what looks like a call and turns out to be none is content.
// Blanks around reasoning and calls are dropped, markers too; nothing else is.
class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  virtual AnswerDelta push(std::string_view text) = 0;
  // What was held back, at the end of the answer.
  virtual AnswerDelta finish() = 0;
};

struct AnswerParserOptions {
  AnswerFormat format = {};
  bool starts_in_reasoning = false;          // opens_reasoning()
  std::vector<std::string> tool_names = {};  // none = the answer has no tool calls
  uint64_t id_seed = 0;                      // ids of calls follow from it; differs between answers
};

std::unique_ptr<AnswerParser> make_answer_parser(AnswerParserOptions options);

}  // namespace winnow
