// AnswerParser: what an answer's text consists of. A model family may write reasoning and tool
// calls into its text; a parser takes them apart as the text comes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/chat_request.h"

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

class AnswerParser {
 public:
  virtual ~AnswerParser() = default;
  virtual AnswerDelta push(std::string_view text) = 0;
  // What was held back, at the end of the answer.
  virtual AnswerDelta finish() = 0;
};

// Makes the parser of one choice.
using AnswerParserFactory = std::function<std::unique_ptr<AnswerParser>(const ChatRequest&)>;

// Takes all text for content.
std::unique_ptr<AnswerParser> plain_answer_parser(const ChatRequest& request);

}  // namespace winnow
