// The parser of answers whose reasoning and tool calls stand between markers in one text.
#pragma once

#include <string>
#include <vector>

#include "base/mark_finder.h"
#include "constrain/answer_parser.h"
#include "constrain/tool_call_text.h"

namespace winnow {

class MarkedAnswerParser final : public AnswerParser {
 public:
  explicit MarkedAnswerParser(AnswerParserOptions options);
  AnswerDelta push(std::string_view text) override;
  AnswerDelta finish() override;

 private:
  enum class State {
    kStart,  // nothing but blanks came
    kReasoning,
    kContent,
    kCall,       // after the marker `opening_`
    kMoreCalls,  // after a call, where another may follow without the first marker
  };

  // Each returns false if the state can do nothing before more text comes.
  bool run_once(bool at_end, AnswerDelta& delta);
  bool start(bool at_end);
  bool reasoning(bool at_end, AnswerDelta& delta);
  bool content(bool at_end, AnswerDelta& delta);
  bool call(bool at_end, AnswerDelta& delta);
  bool more_calls(bool at_end);

  // Takes `size` bytes from the front of text_.
  std::string take(size_t size);
  void begin_call(size_t opening_size);
  void add_content(std::string_view text, AnswerDelta& delta);
  void add_reasoning(std::string_view text, AnswerDelta& delta);
  void add_calls(std::vector<ToolCall> calls, AnswerDelta& delta);
  bool is_offered(const std::vector<ToolCall>& calls) const;

  AnswerParserOptions options_;
  State state_;
  const MarkSet think_end_{{std::string(marker::kThinkEnd)}};
  const MarkSet call_markers_;  // none without tools
  std::string text_;            // not yet decided
  std::string opening_;         // what came before text_, of kCall
  std::string blanks_;          // at the end of reasoning or content: dropped if nothing follows
  bool drops_blanks_ = false;   // the next content follows reasoning or a call
  bool reasoned_ = false;       // there was reasoning that is not blank
  bool may_skip_think_;         // the marker that the prompt ends with may come again
  int32_t num_calls_ = 0;
};

}  // namespace winnow
