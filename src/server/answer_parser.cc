#include "server/answer_parser.h"

namespace winnow {
namespace {

class PlainParser final : public AnswerParser {
 public:
  AnswerDelta push(std::string_view text) override { return {.content = std::string(text)}; }
  AnswerDelta finish() override { return {}; }
};

}  // namespace

std::unique_ptr<AnswerParser> plain_answer_parser(const ChatRequest& /*request*/) {
  return std::make_unique<PlainParser>();
}

}  // namespace winnow
