// The parser of answers that consist of messages in channels (gpt-oss). The prompt ends with
// <|start|>assistant; each message is a header, <|message|>, a body and an end.
#pragma once

#include <string>

#include "base/mark_finder.h"
#include "constrain/answer_parser.h"

namespace winnow {

class HarmonyAnswerParser final : public AnswerParser {
 public:
  explicit HarmonyAnswerParser(AnswerParserOptions options);
  AnswerDelta push(std::string_view text) override;
  AnswerDelta finish() override;

 private:
  enum class Body { kNone, kReasoning, kContent, kCall };

  // Each returns false if nothing more can be done before more text comes.
  bool header();
  bool body(bool at_end, AnswerDelta& delta);
  void add_body(std::string_view text, AnswerDelta& delta);
  void end_body(AnswerDelta& delta);

  AnswerParserOptions options_;
  const MarkSet body_ends_;
  Body body_ = Body::kNone;  // kNone: in a header
  std::string text_;         // not yet decided
  std::string name_;         // of kCall
  std::string arguments_;
  int32_t num_calls_ = 0;
};

}  // namespace winnow
