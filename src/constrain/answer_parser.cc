#include "constrain/answer_parser.h"

#include <utility>

#include "constrain/harmony_answer_parser.h"
#include "constrain/marked_answer_parser.h"

namespace winnow {

std::unique_ptr<AnswerParser> make_answer_parser(AnswerParserOptions options) {
  if (options.format.reasoning == ReasoningStyle::kHarmony) {
    return std::make_unique<HarmonyAnswerParser>(std::move(options));
  }
  return std::make_unique<MarkedAnswerParser>(std::move(options));
}

}  // namespace winnow
