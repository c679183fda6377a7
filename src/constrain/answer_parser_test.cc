#include "constrain/answer_parser.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "support/golden.h"
#include "support/slow_build.h"

namespace winnow {
namespace {

std::string written(const AnswerDelta& delta) {
  std::string out = "reasoning: " + delta.reasoning + "\ncontent: " + delta.content + "\n";
  for (const ToolCallDelta& call : delta.tool_calls) {
    out += std::to_string(call.index) + " " + call.id + " " + call.name + " " + call.arguments;
    out += "\n";
  }
  return out;
}

void append(AnswerDelta& to, AnswerDelta delta) {
  to.reasoning += delta.reasoning;
  to.content += delta.content;
  for (ToolCallDelta& call : delta.tool_calls) to.tool_calls.push_back(std::move(call));
}

AnswerDelta parse(const AnswerParserOptions& options, const std::vector<std::string>& parts) {
  const auto parser = make_answer_parser(options);
  AnswerDelta whole;
  for (const std::string& part : parts) append(whole, parser->push(part));
  append(whole, parser->finish());
  return whole;
}

AnswerParserOptions options_of(ToolCallStyle style, ReasoningStyle reasoning) {
  return {{style, reasoning}, false, {"f", "get_weather"}, 7};
}

struct Sample {
  AnswerParserOptions options;
  std::string text;
  std::string reasoning;
  std::string content;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
};

const AnswerParserOptions kQwen = options_of(ToolCallStyle::kTagged, ReasoningStyle::kThinkTags);
const AnswerParserOptions kLlama = options_of(ToolCallStyle::kLlama, ReasoningStyle::kNone);
const AnswerParserOptions kMistral = options_of(ToolCallStyle::kMistral, ReasoningStyle::kNone);
const AnswerParserOptions kGranite = options_of(ToolCallStyle::kGranite, ReasoningStyle::kNone);
const AnswerParserOptions kDeepSeek =
    options_of(ToolCallStyle::kDeepSeek, ReasoningStyle::kThinkTags);
const AnswerParserOptions kHarmony = options_of(ToolCallStyle::kHarmony, ReasoningStyle::kHarmony);

AnswerParserOptions in_reasoning(AnswerParserOptions options) {
  options.starts_in_reasoning = true;
  return options;
}

AnswerParserOptions without_tools(AnswerParserOptions options) {
  options.tool_names.clear();
  return options;
}

std::vector<Sample> samples() {
  const std::string call = R"({"name": "f", "arguments": {"a": 1.50, "b": "}</tool_call>"}})";
  const std::string arguments = R"({"a": 1.50, "b": "}</tool_call>"})";
  return {
      {kQwen, "Plain <b> text\n", "", "Plain <b> text\n", {}},
      {kQwen, "", "", "", {}},
      {kQwen, "  two\n\n", "", "  two\n\n", {}},
      {kQwen, "<think>\nwhy <not>\n\n</think>\n\nSo.", "why <not>", "So.", {}},
      {kQwen, "\n<think>\n\n</think>\n\nSo. <think>x</think>", "", "So. <think>x</think>", {}},
      {kQwen, "<think>never ends </thin", "never ends </thin", "", {}},
      {kQwen, "<thin", "", "<thin", {}},
      {in_reasoning(kQwen), "because\n</think>\nSo.", "because", "So.", {}},
      {in_reasoning(kQwen), "<think>\nbecause</think>So.", "because", "So.", {}},
      {kQwen, "<tool_call>\n" + call + "\n</tool_call>", "", "", {{"f", arguments}}},
      {kQwen,
       "<think>x</think>\n\nI ask.\n<tool_call>\n" + call + "\n</tool_call>\n<tool_call>\n" + call +
           "\n</tool_call>\n",
       "x",
       "I ask.",
       {{"f", arguments}, {"f", arguments}}},
      {kQwen, "<tool_call>" + call, "", "", {{"f", arguments}}},
      {kQwen, "<tool_call>" + call + "</tool_call> after", "", "after", {{"f", arguments}}},
      {kQwen, "<tool_call>{\"name\":\"f\"}</tool_call>", "", "", {{"f", "{}"}}},
      {kQwen,
       "<tool_call>{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":2}\"}</tool_call>",
       "",
       "",
       {{"f", "{\"a\":2}"}}},
      {kQwen,
       "<tool_call>{\"arguments\": {\"x\": [1, {}]} , \"name\": \"f\"}</tool_call>",
       "",
       "",
       {{"f", "{\"x\": [1, {}]}"}}},
      // None of these is a call.
      {kQwen, "<tool_call>f(1)</tool_call> x", "", "<tool_call>f(1)</tool_call> x", {}},
      {kQwen,
       "a <tool_call>\n{\"name\": }\n</tool_call>",
       "",
       "a <tool_call>\n{\"name\": }\n</tool_call>",
       {}},
      {kQwen, "<tool_call>{\"name\": \"f\", \"arg", "", "<tool_call>{\"name\": \"f\", \"arg", {}},
      {kQwen,
       "<tool_call>{\"name\":\"f\",\"arguments\":3}</tool_call>",
       "",
       "<tool_call>{\"name\":\"f\",\"arguments\":3}</tool_call>",
       {}},
      {kQwen, "<tool_call>{]}</tool_call>", "", "<tool_call>{]}</tool_call>", {}},
      {kQwen,
       "<tool_call> <tool_call>" + call + "</tool_call>",
       "",
       "<tool_call>",
       {{"f", arguments}}},
      {kQwen, "<tool_ca", "", "<tool_ca", {}},
      {without_tools(kQwen), "<tool_call>" + call, "", "<tool_call>" + call, {}},
      {kLlama, R"({"name": "f", "parameters": {"x": 1}})", "", "", {{"f", R"({"x": 1})"}}},
      {kLlama,
       R"(<|python_tag|>{"name": "f", "parameters": {}}; {"name": "f"})",
       "",
       "",
       {{"f", "{}"}, {"f", "{}"}}},
      {kLlama,
       R"( {"name": "Ada", "parameters": {}})",
       "",
       R"( {"name": "Ada", "parameters": {}})",
       {}},
      {kLlama, R"({"name": "f", "parameters": {}}; and)", "", "; and", {{"f", "{}"}}},
      {kLlama, "<|python_tag|>print(1)", "", "<|python_tag|>print(1)", {}},
      {kLlama, R"({"answer": 42} )", "", R"({"answer": 42} )", {}},
      {kMistral,
       R"([TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}}, {"name": "f"}])",
       "",
       "",
       {{"f", R"({"x": 1})"}, {"f", "{}"}}},
      {kMistral,
       R"(Well. [TOOL_CALLS]get_weather[ARGS]{"city": "Bern"})",
       "",
       "Well.",
       {{"get_weather", R"({"city": "Bern"})"}}},
      {kMistral,
       R"([TOOL_CALLS]f{"x": []}[TOOL_CALLS]f{})",
       "",
       "",
       {{"f", R"({"x": []})"}, {"f", "{}"}}},
      {kMistral, "[TOOL_CALLS] []", "", "[TOOL_CALLS] []", {}},
      {kMistral, "[TOOL_CALLS]f [x]", "", "[TOOL_CALLS]f [x]", {}},
      {kGranite,
       R"(<|tool_call|>[{"name": "f", "arguments": {"x": 1}}])",
       "",
       "",
       {{"f", R"({"x": 1})"}}},
      {kDeepSeek,
       "<think>t</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
       "```json\n{\"x\": 1}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
       "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "t",
       "",
       {{"f", "{\"x\": 1}"}, {"f", "{}"}}},
      {kDeepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"x\":2}<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>",
       "",
       "",
       {{"f", "{\"x\":2}"}}},
      {kDeepSeek, "<｜tool▁calls▁begin｜>no", "", "<｜tool▁calls▁begin｜>no", {}},
      {kHarmony,
       "<|channel|>analysis<|message|>Hmm "
       "<|x|>.<|end|><|start|>assistant<|channel|>final<|message|>"
       "Yes.<|return|>",
       "Hmm <|x|>.",
       "Yes.",
       {}},
      {kHarmony,
       "<|channel|>analysis<|message|>Ask.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f <|constrain|>json<|message|>{\"x\": 1}<|call|>",
       "Ask.",
       "",
       {{"f", "{\"x\": 1}"}}},
      {kHarmony,
       " to=functions.f<|channel|>commentary json<|message|>{\"x\": 1}",
       "",
       "",
       {{"f", "{\"x\": 1}"}}},
      {kHarmony, "<|channel|>final<|message|>a<|e", "", "a<|e", {}},
      {kHarmony, "no channel", "", "no channel", {}},
      {kHarmony, " to=functions.f<|channel|>commentary<|message|>{\"x\"", "", "{\"x\"", {}},
  };
}

TEST(AnswerParser, SplitsAnswersOfEveryFamily) {
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.text);
    const AnswerDelta found = parse(sample.options, {sample.text});
    EXPECT_EQ(found.reasoning, sample.reasoning);
    EXPECT_EQ(found.content, sample.content);
    ASSERT_EQ(found.tool_calls.size(), sample.calls.size());
    std::set<std::string> ids;
    for (size_t i = 0; i < sample.calls.size(); ++i) {
      EXPECT_EQ(found.tool_calls[i].index, static_cast<int32_t>(i));
      EXPECT_EQ(found.tool_calls[i].name, sample.calls[i].first);
      EXPECT_EQ(found.tool_calls[i].arguments, sample.calls[i].second);
      EXPECT_EQ(found.tool_calls[i].id.size(), 9U);
      EXPECT_TRUE(ids.insert(found.tool_calls[i].id).second);
    }
  }
}

TEST(AnswerParser, AnySplitOfATextGivesTheSameAnswer) {
  const size_t stride = kSlowBuild ? 5 : 1;
  for (const Sample& sample : samples()) {
    SCOPED_TRACE(sample.text);
    const std::string whole = written(parse(sample.options, {sample.text}));
    std::vector<std::string> bytes;
    for (const char byte : sample.text) bytes.emplace_back(1, byte);
    EXPECT_EQ(written(parse(sample.options, bytes)), whole);
    for (size_t first = 0; first <= sample.text.size(); ++first) {
      for (size_t second = first; second <= sample.text.size(); second += stride) {
        ASSERT_EQ(written(parse(sample.options, {sample.text.substr(0, first),
                                                 sample.text.substr(first, second - first),
                                                 sample.text.substr(second)})),
                  whole)
            << first << " " << second;
      }
    }
  }
}

TEST(AnswerParser, TextThatCannotBecomeAMarkerIsToldAtOnce) {
  const auto parser = make_answer_parser(kQwen);
  EXPECT_EQ(parser->push("Hello").content, "Hello");
  EXPECT_EQ(parser->push(" wor").content, " wor");
  EXPECT_EQ(parser->push("ld <to").content, "ld");
  EXPECT_EQ(parser->push("p>").content, " <top>");
  const auto thinker = make_answer_parser(in_reasoning(kQwen));
  EXPECT_EQ(thinker->push("because").reasoning, "because");
}

TEST(AnswerParser, LongArgumentsAndDeepNestingAreBounded) {
  const std::string deep =
      "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":" + std::string(100'000, '[') +
      "</tool_call>";
  EXPECT_EQ(parse(kQwen, {deep}).content, deep);
  const std::string many = std::string(2'000, '[') + "<tool_call>";
  std::string text;
  for (int i = 0; i < 20; ++i) text += many;
  EXPECT_EQ(parse(kQwen, {text}).content, text);
}

TEST(AnswerFormat, TheFamilyIsToldFromTheTemplate) {
  const auto format_of = [](const std::string& name) {
    std::ifstream file(test::golden_path("templates/" + name + ".jinja"));
    return answer_format_of(std::string{std::istreambuf_iterator<char>(file), {}});
  };
  const auto expect = [&](const char* name, ToolCallStyle calls, ReasoningStyle reasoning) {
    EXPECT_EQ(format_of(name).tool_calls, calls) << name;
    EXPECT_EQ(format_of(name).reasoning, reasoning) << name;
  };
  expect("hermes_tools", ToolCallStyle::kTagged, ReasoningStyle::kNone);
  expect("qwen25_tools", ToolCallStyle::kTagged, ReasoningStyle::kNone);
  expect("qwen3_thinking", ToolCallStyle::kTagged, ReasoningStyle::kThinkTags);
  expect("smollm3", ToolCallStyle::kTagged, ReasoningStyle::kThinkTags);
  expect("llama31_tools", ToolCallStyle::kLlama, ReasoningStyle::kNone);
  expect("mistral_v3_tools", ToolCallStyle::kMistral, ReasoningStyle::kNone);
  expect("granite", ToolCallStyle::kGranite, ReasoningStyle::kNone);
  expect("deepseek_v3", ToolCallStyle::kDeepSeek, ReasoningStyle::kThinkTags);
  expect("harmony", ToolCallStyle::kHarmony, ReasoningStyle::kHarmony);
  for (const char* name : {"chatml", "gemma3", "llama3", "phi3", "smollm2", "zephyr"}) {
    expect(name, ToolCallStyle::kNone, ReasoningStyle::kNone);
  }
}

TEST(AnswerFormat, APromptThatEndsWithTheMarkerOpensTheReasoning) {
  const AnswerFormat format{ToolCallStyle::kNone, ReasoningStyle::kThinkTags};
  EXPECT_TRUE(opens_reasoning(format, "<|assistant|><think>\n"));
  EXPECT_FALSE(opens_reasoning(format, "<|assistant|><think>\n\n</think>\n\n"));
  EXPECT_FALSE(opens_reasoning(format, ""));
  EXPECT_FALSE(opens_reasoning({}, "<think>\n"));
}

}  // namespace
}  // namespace winnow
