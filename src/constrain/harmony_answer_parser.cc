#include "constrain/harmony_answer_parser.h"

#include <algorithm>
#include <utility>

#include "constrain/call_body.h"
#include "constrain/tool_call_text.h"

namespace winnow {
namespace {

std::vector<std::string> body_ends() {
  return {std::string(marker::kHarmonyEnd), std::string(marker::kHarmonyCall),
          std::string(marker::kHarmonyReturn), std::string(marker::kHarmonyStart)};
}

// The word after `key` in a header, up to a blank or a marker.
std::string word_after(std::string_view header, std::string_view key) {
  const size_t found = header.find(key);
  if (found == std::string_view::npos) return {};
  const std::string_view rest = header.substr(found + key.size());
  return std::string(rest.substr(0, rest.find_first_of(" \n\t<")));
}

}  // namespace

HarmonyAnswerParser::HarmonyAnswerParser(AnswerParserOptions options)
    : options_(std::move(options)), body_ends_(body_ends()) {}

AnswerDelta HarmonyAnswerParser::push(std::string_view text) {
  text_ += text;
  AnswerDelta delta;
  while (body_ == Body::kNone ? header() : body(false, delta)) {
  }
  return delta;
}

AnswerDelta HarmonyAnswerParser::finish() {
  AnswerDelta delta;
  while (body_ == Body::kNone ? header() : body(true, delta)) {
  }
  if (body_ == Body::kNone) {
    // A header that never got a body: only a text that is no header at all is an answer.
    if (text_.find("<|") == std::string::npos) delta.content += text_;
  } else {
    end_body(delta);
  }
  text_.clear();
  return delta;
}

bool HarmonyAnswerParser::header() {
  constexpr std::string_view kFunctions = "to=functions.";
  const size_t end = text_.find(marker::kHarmonyMessage);
  if (end == std::string::npos) return false;
  const std::string header = text_.substr(0, end);
  text_.erase(0, end + marker::kHarmonyMessage.size());
  name_ = options_.tool_names.empty() ? std::string() : word_after(header, kFunctions);
  const std::string channel = word_after(header, marker::kHarmonyChannel);
  body_ = !name_.empty() ? Body::kCall : channel == "analysis" ? Body::kReasoning : Body::kContent;
  return true;
}

bool HarmonyAnswerParser::body(bool at_end, AnswerDelta& delta) {
  const MarkFinder search(body_ends_, text_);
  const std::optional<FoundMark>& end = search.found();
  const size_t kept = at_end ? 0 : search.num_possible_bytes();
  const size_t decided = end ? end->begin : text_.size() - kept;
  add_body(std::string_view(text_).substr(0, decided), delta);
  text_.erase(0, end ? end->end() : decided);
  if (!end) return false;
  end_body(delta);
  return true;
}

void HarmonyAnswerParser::add_body(std::string_view text, AnswerDelta& delta) {
  if (body_ == Body::kReasoning) delta.reasoning += text;
  if (body_ == Body::kContent) delta.content += text;
  if (body_ == Body::kCall) arguments_ += text;
}

void HarmonyAnswerParser::end_body(AnswerDelta& delta) {
  if (body_ == Body::kCall) {
    const std::string arguments = std::exchange(arguments_, {});
    if (is_json_object(arguments)) {
      const int32_t index = num_calls_++;
      delta.tool_calls.push_back(
          {index, tool_call_id(options_.id_seed, index), std::exchange(name_, {}), arguments});
    } else {
      delta.content += arguments;
    }
  }
  body_ = Body::kNone;
}

}  // namespace winnow
