#include "constrain/answer_format.h"

#include <initializer_list>
#include <utility>

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

std::vector<std::string> markers_of(const AnswerFormat& format) {
  std::vector<std::string> markers;
  const auto add = [&](std::initializer_list<std::string_view> texts) {
    markers.insert(markers.end(), texts.begin(), texts.end());
  };
  if (format.reasoning == ReasoningStyle::kThinkTags) add({marker::kThink, marker::kThinkEnd});
  if (format.reasoning == ReasoningStyle::kHarmony) {
    add({marker::kHarmonyStart, marker::kHarmonyChannel, marker::kHarmonyMessage,
         marker::kHarmonyConstrain, marker::kHarmonyEnd, marker::kHarmonyCall,
         marker::kHarmonyReturn});
  }
  switch (format.tool_calls) {
    case ToolCallStyle::kTagged:
      add({marker::kToolCall, marker::kToolCallEnd});
      break;
    case ToolCallStyle::kLlama:
      add({marker::kPythonTag});
      break;
    case ToolCallStyle::kMistral:
      add({marker::kMistralCalls, marker::kMistralArguments});
      break;
    case ToolCallStyle::kGranite:
      add({marker::kGraniteCall});
      break;
    case ToolCallStyle::kDeepSeek:
      add({marker::kDeepSeekCalls, marker::kDeepSeekCallsEnd, marker::kDeepSeekCall,
           marker::kDeepSeekCallEnd, marker::kDeepSeekSeparator});
      break;
    case ToolCallStyle::kHarmony:
    case ToolCallStyle::kNone:
      break;
  }
  return markers;
}

std::vector<std::string> answer_markers() {
  std::vector<std::string> markers = markers_of({ToolCallStyle::kNone, ReasoningStyle::kHarmony});
  for (const ToolCallStyle style :
       {ToolCallStyle::kTagged, ToolCallStyle::kLlama, ToolCallStyle::kMistral,
        ToolCallStyle::kGranite, ToolCallStyle::kDeepSeek}) {
    for (std::string& text : markers_of({style, ReasoningStyle::kNone})) {
      markers.push_back(std::move(text));
    }
  }
  for (std::string& text : markers_of({ToolCallStyle::kNone, ReasoningStyle::kThinkTags})) {
    markers.push_back(std::move(text));
  }
  return markers;
}

}  // namespace winnow
