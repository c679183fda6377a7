#include "constrain/answer_format.h"

namespace winnow {

AnswerFormat answer_format_of(std::string_view chat_template) {
  const auto has = [&](std::string_view text) {
    return chat_template.find(text) != std::string_view::npos;
  };
  AnswerFormat format;
  if (has(marker::kHarmonyChannel) && has(marker::kHarmonyMessage)) {
    return {ToolCallStyle::kHarmony, ReasoningStyle::kHarmony};
  }
  if (has(marker::kThink) || has(marker::kThinkEnd)) format.reasoning = ReasoningStyle::kThinkTags;
  if (has(marker::kDeepSeekCalls)) {
    format.tool_calls = ToolCallStyle::kDeepSeek;
  } else if (has(marker::kMistralCalls)) {
    format.tool_calls = ToolCallStyle::kMistral;
  } else if (has(marker::kGraniteCall)) {
    format.tool_calls = ToolCallStyle::kGranite;
  } else if (has(marker::kToolCall) || has("<tools>")) {
    format.tool_calls = ToolCallStyle::kTagged;
  } else if (has(marker::kPythonTag) || (has("<|start_header_id|>") && has("ipython"))) {
    format.tool_calls = ToolCallStyle::kLlama;
  }
  return format;
}

bool opens_reasoning(const AnswerFormat& format, std::string_view prompt) {
  if (format.reasoning != ReasoningStyle::kThinkTags) return false;
  const size_t end = prompt.find_last_not_of(" \n\r\t");
  if (end == std::string_view::npos) return false;
  return prompt.substr(0, end + 1).ends_with(marker::kThink);
}

std::vector<std::string> answer_markers() {
  std::vector<std::string> markers;
  for (const std::string_view text : {marker::kThink,
                                      marker::kThinkEnd,
                                      marker::kToolCall,
                                      marker::kToolCallEnd,
                                      marker::kPythonTag,
                                      marker::kMistralCalls,
                                      marker::kMistralArguments,
                                      marker::kGraniteCall,
                                      marker::kDeepSeekCalls,
                                      marker::kDeepSeekCallsEnd,
                                      marker::kDeepSeekCall,
                                      marker::kDeepSeekCallEnd,
                                      marker::kDeepSeekSeparator,
                                      marker::kHarmonyStart,
                                      marker::kHarmonyChannel,
                                      marker::kHarmonyMessage,
                                      marker::kHarmonyConstrain,
                                      marker::kHarmonyEnd,
                                      marker::kHarmonyCall,
                                      marker::kHarmonyReturn}) {
    markers.emplace_back(text);
  }
  return markers;
}

}  // namespace winnow
