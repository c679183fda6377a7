// AnswerFormat: how a model family writes reasoning and tool calls into its answers, told from its
// chat template.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow {

enum class ToolCallStyle {
  kNone,
  kTagged,   // <tool_call>{"name": ..., "arguments": ...}</tool_call>: Hermes, Qwen, SmolLM3
  kLlama,    // {"name": ..., "parameters": ...}, maybe after <|python_tag|>: Llama 3
  kMistral,  // [TOOL_CALLS] [{"name": ..., "arguments": ...}]
  kGranite,  // <|tool_call|>[{"name": ..., "arguments": ...}]
  kDeepSeek,  // <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME ...
  kHarmony,  // a message to=functions.NAME
};

enum class ReasoningStyle {
  kNone,
  kThinkTags,  // <think>...</think> first
  kHarmony,    // messages in the channel "analysis"
};

struct AnswerFormat {
  ToolCallStyle tool_calls = ToolCallStyle::kNone;
  ReasoningStyle reasoning = ReasoningStyle::kNone;
};

AnswerFormat answer_format_of(std::string_view chat_template);

// Whether the answer to `prompt`, as rendered, begins inside the reasoning.
bool opens_reasoning(const AnswerFormat& format, std::string_view prompt);

namespace marker {
inline constexpr std::string_view kThink = "<think>", kThinkEnd = "</think>";
inline constexpr std::string_view kToolCall = "<tool_call>", kToolCallEnd = "</tool_call>";
inline constexpr std::string_view kPythonTag = "<|python_tag|>";
inline constexpr std::string_view kMistralCalls = "[TOOL_CALLS]", kMistralArguments = "[ARGS]";
inline constexpr std::string_view kGraniteCall = "<|tool_call|>";
inline constexpr std::string_view kDeepSeekCalls = "<｜tool▁calls▁begin｜>",
                                  kDeepSeekCallsEnd = "<｜tool▁calls▁end｜>",
                                  kDeepSeekCall = "<｜tool▁call▁begin｜>",
                                  kDeepSeekCallEnd = "<｜tool▁call▁end｜>",
                                  kDeepSeekSeparator = "<｜tool▁sep｜>";
inline constexpr std::string_view kHarmonyStart = "<|start|>", kHarmonyChannel = "<|channel|>",
                                  kHarmonyMessage = "<|message|>",
                                  kHarmonyConstrain = "<|constrain|>", kHarmonyEnd = "<|end|>",
                                  kHarmonyCall = "<|call|>", kHarmonyReturn = "<|return|>";
}  // namespace marker

// All of them. Those that are control tokens of a vocabulary are not text by themselves: whoever
// turns tokens into text for an AnswerParser shows these control tokens and no others
// (TextStream's `shown_control_tokens`), and a TokenTable is made with this list.
std::vector<std::string> answer_markers();

}  // namespace winnow
