#include "constrain/marked_answer_parser.h"

#include <algorithm>
#include <utility>

#include "constrain/call_body.h"

namespace winnow {
namespace {

std::vector<std::string> call_markers_of(ToolCallStyle style) {
  switch (style) {
    case ToolCallStyle::kTagged:
      return {std::string(marker::kToolCall)};
    case ToolCallStyle::kLlama:
      return {std::string(marker::kPythonTag)};
    case ToolCallStyle::kMistral:
      return {std::string(marker::kMistralCalls)};
    case ToolCallStyle::kGranite:
      return {std::string(marker::kGraniteCall)};
    case ToolCallStyle::kDeepSeek:
      return {std::string(marker::kDeepSeekCalls), std::string(marker::kDeepSeekCall)};
    case ToolCallStyle::kNone:
    case ToolCallStyle::kHarmony:
      break;
  }
  return {};
}

}  // namespace

MarkedAnswerParser::MarkedAnswerParser(AnswerParserOptions options)
    : options_(std::move(options)),
      state_(options_.starts_in_reasoning ? State::kReasoning : State::kStart),
      call_markers_(options_.tool_names.empty() ? std::vector<std::string>()
                                                : call_markers_of(options_.format.tool_calls)),
      may_skip_think_(options_.starts_in_reasoning) {}

AnswerDelta MarkedAnswerParser::push(std::string_view text) {
  text_ += text;
  AnswerDelta delta;
  // What a call lacks is a closing bracket, or what comes after one.
  const bool waits = state_ == State::kCall && text_.size() > text.size() + 1024 &&
                     text.find_first_of("}]>") == std::string_view::npos;
  while (!waits && run_once(false, delta)) {
  }
  return delta;
}

AnswerDelta MarkedAnswerParser::finish() {
  AnswerDelta delta;
  while (run_once(true, delta)) {
  }
  const bool in_content = state_ == State::kContent;
  if (in_content && num_calls_ == 0 && !drops_blanks_) delta.content += blanks_;
  blanks_.clear();
  return delta;
}

bool MarkedAnswerParser::run_once(bool at_end, AnswerDelta& delta) {
  switch (state_) {
    case State::kStart:
      return start(at_end);
    case State::kReasoning:
      return reasoning(at_end, delta);
    case State::kContent:
      return content(at_end, delta);
    case State::kCall:
      return call(at_end, delta);
    case State::kMoreCalls:
      return more_calls(at_end);
  }
  return false;
}

std::string MarkedAnswerParser::take(size_t size) {
  std::string taken = text_.substr(0, size);
  text_.erase(0, size);
  return taken;
}

void MarkedAnswerParser::begin_call(size_t opening_size) {
  opening_ = take(opening_size);
  state_ = State::kCall;
}

// The reasoning's marker counts only here; so does a call without marker.
bool MarkedAnswerParser::start(bool at_end) {
  const size_t blanks = num_blanks(text_);
  const std::string_view rest = std::string_view(text_).substr(blanks);
  const bool may_think = options_.format.reasoning == ReasoningStyle::kThinkTags;
  if (may_think && rest.starts_with(marker::kThink)) {
    take(blanks + marker::kThink.size());
    state_ = State::kReasoning;
    return true;
  }
  if (!at_end && (rest.empty() || (may_think && may_become(rest, marker::kThink)))) return false;
  const bool calls_bare =
      options_.format.tool_calls == ToolCallStyle::kLlama && !options_.tool_names.empty();
  if (calls_bare && rest.starts_with('{')) {
    begin_call(blanks);
  } else {
    state_ = State::kContent;
  }
  return true;
}

bool MarkedAnswerParser::reasoning(bool at_end, AnswerDelta& delta) {
  if (may_skip_think_) {
    const size_t blanks = num_blanks(text_);
    const std::string_view rest = std::string_view(text_).substr(blanks);
    if (!at_end && may_become(rest, marker::kThink)) return false;
    if (rest.starts_with(marker::kThink)) take(blanks + marker::kThink.size());
    may_skip_think_ = false;
  }
  const MarkFinder search(think_end_, text_);
  if (search.found()) {
    add_reasoning(take(search.found()->begin), delta);
    take(search.found()->text.size());
    blanks_.clear();
    drops_blanks_ = true;
    state_ = State::kContent;
    return true;
  }
  add_reasoning(take(text_.size() - (at_end ? 0 : search.num_possible_bytes())), delta);
  return false;
}

bool MarkedAnswerParser::content(bool at_end, AnswerDelta& delta) {
  const MarkFinder search(call_markers_, text_);
  if (search.found()) {
    add_content(take(search.found()->begin), delta);
    begin_call(search.found()->text.size());
    return true;
  }
  add_content(take(text_.size() - (at_end ? 0 : search.num_possible_bytes())), delta);
  return false;
}

bool MarkedAnswerParser::call(bool at_end, AnswerDelta& delta) {
  const bool has_marker = num_blanks(opening_) < opening_.size();
  CallBody body = read_call_body(options_.format.tool_calls, opening_, text_, at_end);
  if (body.kind == CallBody::Kind::kNeedsMore) return false;
  // An object that an answer begins with is a call only if it names a tool.
  const bool is_call =
      body.kind == CallBody::Kind::kWhole && (has_marker || is_offered(body.calls));
  if (!is_call) {
    state_ = State::kContent;
    add_content(std::exchange(opening_, {}), delta);
    return true;
  }
  take(body.size);
  opening_.clear();
  blanks_.clear();
  drops_blanks_ = true;
  add_calls(std::move(body.calls), delta);
  state_ = State::kMoreCalls;
  return true;
}

bool MarkedAnswerParser::more_calls(bool at_end) {
  const ToolCallStyle style = options_.format.tool_calls;
  const size_t blanks = num_blanks(text_);
  std::string_view rest = std::string_view(text_).substr(blanks);
  state_ = State::kContent;
  if (style == ToolCallStyle::kLlama) {
    const bool separated = rest.starts_with(';');
    const size_t skipped = blanks + separated;
    const size_t more = num_blanks(std::string_view(text_).substr(skipped));
    rest = std::string_view(text_).substr(skipped + more);
    if (rest.starts_with('{')) {
      begin_call(skipped + more);
    } else if (rest.empty() && !at_end) {
      state_ = State::kMoreCalls;
      return false;
    }
  } else if (style == ToolCallStyle::kDeepSeek) {
    if (rest.starts_with(marker::kDeepSeekCallsEnd)) {
      take(blanks + marker::kDeepSeekCallsEnd.size());
    } else if (!at_end && may_become(rest, marker::kDeepSeekCallsEnd)) {
      state_ = State::kMoreCalls;
      return false;
    }
  }
  return true;
}

bool MarkedAnswerParser::is_offered(const std::vector<ToolCall>& calls) const {
  return std::all_of(calls.begin(), calls.end(), [this](const ToolCall& call) {
    return std::find(options_.tool_names.begin(), options_.tool_names.end(), call.name) !=
           options_.tool_names.end();
  });
}

void MarkedAnswerParser::add_content(std::string_view text, AnswerDelta& delta) {
  blanks_ += text;
  const size_t end = blanks_.find_last_not_of(" \n\r\t") + 1;
  if (end == 0) return;
  const size_t begin = drops_blanks_ ? num_blanks(blanks_) : 0;
  drops_blanks_ = false;
  delta.content.append(blanks_, begin, end - begin);
  blanks_.erase(0, end);
}

void MarkedAnswerParser::add_reasoning(std::string_view text, AnswerDelta& delta) {
  blanks_ += text;
  const size_t end = blanks_.find_last_not_of(" \n\r\t") + 1;
  if (end == 0) return;
  const size_t begin = reasoned_ ? 0 : num_blanks(blanks_);
  reasoned_ = true;
  delta.reasoning.append(blanks_, begin, end - begin);
  blanks_.erase(0, end);
}

void MarkedAnswerParser::add_calls(std::vector<ToolCall> calls, AnswerDelta& delta) {
  for (ToolCall& call : calls) {
    const int32_t index = num_calls_++;
    delta.tool_calls.push_back({index, tool_call_id(options_.id_seed, index), std::move(call.name),
                                std::move(call.arguments)});
  }
}

}  // namespace winnow
