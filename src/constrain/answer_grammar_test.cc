#include "constrain/answer_grammar.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "constrain/answer_parser.h"
#include "constrain/grammar_constraint.h"
#include "support/grammar_checks.h"
#include "support/tiny_tokenizer.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::accepts;

class AnswerGrammarTest : public testing::Test {
 protected:
  Result<std::shared_ptr<const Grammar>> grammar_of(const std::string& request,
                                                    const AnswerFormat& format,
                                                    bool starts_in_reasoning = false) const {
    TRY(const auto rules, read_answer_rules(json::parse(request).as_object()));
    if (!rules) return fail(ErrorCode::kInvalidArgument, "nothing is asked for");
    return answer_grammar(*rules, format, starts_in_reasoning, *table_);
  }
  std::string error_of(const std::string& request, const AnswerFormat& format = {}) const {
    const auto grammar = grammar_of(request, format);
    return grammar.ok() ? "accepted" : grammar.error().message;
  }

  test::TinyTokenizer model_ = test::tiny_tokenizer("qwen2-bias");
  std::shared_ptr<const TokenTable> table_ =
      std::make_shared<const TokenTable>(*model_.tokenizer, answer_markers());
};

constexpr const char* kTools = R"("tools": [
  {"type": "function", "function": {"name": "f", "parameters":
    {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}},
  {"type": "function", "function": {"name": "now"}}])";

std::string with_tools(const std::string& choice) {
  return "{" + std::string(kTools) + ", \"tool_choice\": " + choice + "}";
}

TEST_F(AnswerGrammarTest, JsonModeIsAnObject) {
  const auto grammar = grammar_of(R"({"response_format": {"type": "json_object"}})", {});
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(accepts(**grammar, R"({"a": [1]})"));
  EXPECT_TRUE(accepts(**grammar, R"( {})"));
  EXPECT_FALSE(accepts(**grammar, "[]"));
  EXPECT_FALSE(accepts(**grammar, "{} "));
}

TEST_F(AnswerGrammarTest, ReasoningMayComeBeforeJson) {
  const std::string request =
      R"({"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"const":1}}}})";
  const AnswerFormat thinks{ToolCallStyle::kTagged, ReasoningStyle::kThinkTags};
  const auto grammar = grammar_of(request, thinks);
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(accepts(**grammar, "1"));
  EXPECT_TRUE(accepts(**grammar, "<think>\nis </thin</think 2?</think>\n\n1"));
  EXPECT_FALSE(accepts(**grammar, "<think>1"));
  EXPECT_FALSE(accepts(**grammar, "<think>a</think>b</think>1"));
  EXPECT_FALSE(accepts(**grammar, "<think>\xFF</think>1"));
  const auto opened = grammar_of(request, thinks, true);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE(accepts(**opened, "hm</think>\n1"));
  EXPECT_FALSE(accepts(**opened, "1"));
}

TEST_F(AnswerGrammarTest, DemandedCallsAreWhatTheParserReads) {
  struct Case {
    AnswerFormat format;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{ToolCallStyle::kTagged, ReasoningStyle::kNone},
       "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 3}}\n</tool_call>"},
      {{ToolCallStyle::kLlama, ReasoningStyle::kNone}, R"({"name": "f", "parameters": {"x": 3}})"},
      {{ToolCallStyle::kMistral, ReasoningStyle::kNone},
       R"([TOOL_CALLS] [{"name": "f", "arguments": {"x": 3}}])"},
      {{ToolCallStyle::kGranite, ReasoningStyle::kNone},
       R"(<|tool_call|>[{"name": "f", "arguments": {"x": 3}}])"},
      {{ToolCallStyle::kDeepSeek, ReasoningStyle::kThinkTags},
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"x\": 3}\n"
       "```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {{ToolCallStyle::kHarmony, ReasoningStyle::kHarmony},
       "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f <|constrain|>json<|message|>{\"x\": 3}"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.text);
    for (const char* choice : {"\"required\"", R"({"type":"function","function":{"name":"f"}})"}) {
      const auto grammar = grammar_of(with_tools(choice), one.format);
      ASSERT_TRUE(grammar.ok()) << grammar.error().message;
      EXPECT_TRUE(accepts(**grammar, one.text));
      EXPECT_FALSE(accepts(**grammar, "no"));
      EXPECT_FALSE(accepts(**grammar, ""));
    }
    const auto parser = make_answer_parser({one.format, false, {"f", "now"}, 1});
    AnswerDelta found = parser->push(one.text);
    const AnswerDelta rest = parser->finish();
    for (const ToolCallDelta& call : rest.tool_calls) found.tool_calls.push_back(call);
    ASSERT_EQ(found.tool_calls.size(), 1U);
    EXPECT_EQ(found.tool_calls[0].name, "f");
    EXPECT_EQ(found.tool_calls[0].arguments, "{\"x\": 3}");
  }
}

TEST_F(AnswerGrammarTest, SeveralCallsFollowEachOtherUnlessOneIsAskedFor) {
  const AnswerFormat format{ToolCallStyle::kTagged, ReasoningStyle::kNone};
  const std::string call = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
  const auto several = grammar_of(with_tools("\"required\""), format);
  ASSERT_TRUE(several.ok()) << several.error().message;
  EXPECT_TRUE(accepts(**several, call + "\n" + call));
  const auto one = grammar_of(with_tools(R"("required", "parallel_tool_calls": false)"), format);
  ASSERT_TRUE(one.ok());
  EXPECT_TRUE(accepts(**one, call));
  EXPECT_FALSE(accepts(**one, call + "\n" + call));
}

TEST_F(AnswerGrammarTest, ToolsMayBeDescribedAsTheResponsesApiDoes) {
  const std::string request =
      R"({"tools": [{"type": "web_search"}, {"type": "function", "name": "g", "parameters": {}}],
          "tool_choice": {"type": "function", "name": "g"}})";
  const auto grammar = grammar_of(request, {ToolCallStyle::kLlama, ReasoningStyle::kNone});
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(accepts(**grammar, R"({"name": "g", "parameters": 1})"));
  EXPECT_EQ(tool_names_of(json::parse(request).as_object()), std::vector<std::string>{"g"});
}

TEST_F(AnswerGrammarTest, ASchemaMayStandByItself) {
  const auto grammar = grammar_of(R"({"json_schema": {"const": 1}})", {});
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(accepts(**grammar, "1"));
}

TEST_F(AnswerGrammarTest, AGrammarOfTheRequestHoldsTheAnswer) {
  const auto grammar = grammar_of(R"({"grammar": "root ::= [0-9]+"})", {});
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(accepts(**grammar, "42"));
  EXPECT_FALSE(accepts(**grammar, " 42"));
  EXPECT_FALSE(accepts(**grammar, "x"));
  EXPECT_NE(error_of(R"({"grammar": 3})").find("grammar"), std::string::npos);
  EXPECT_NE(error_of(R"({"grammar": "root ::= a"})").find("'a'"), std::string::npos);
  EXPECT_TRUE(error_of(R"({"grammar": "root ::= \"x\" root"})").starts_with("grammar: "));
}

TEST_F(AnswerGrammarTest, AGrammarStandsBesideNoOtherForm) {
  constexpr const char* kGrammar = R"("grammar": "root ::= [0-9]+")";
  for (const std::string& other : {std::string(R"("response_format": {"type": "json_object"})"),
                                   std::string(R"("json_schema": {"const": 1})"),
                                   std::string(kTools) + R"(, "tool_choice": "required")"}) {
    const std::string error = error_of("{" + other + ", " + kGrammar + "}");
    EXPECT_TRUE(error.starts_with("grammar: ")) << error;
  }
}

TEST_F(AnswerGrammarTest, WhatIsNotDemandedIsFree) {
  for (const char* request :
       {"{}", R"({"response_format": null})", R"({"response_format": {"type": "text"}})"}) {
    const auto rules = read_answer_rules(json::parse(request).as_object());
    ASSERT_TRUE(rules.ok());
    EXPECT_FALSE(rules->has_value()) << request;
  }
  EXPECT_EQ(error_of(with_tools("\"auto\"")), "nothing is asked for");
  EXPECT_EQ(tool_names_of(json::parse(with_tools("\"auto\"")).as_object()),
            (std::vector<std::string>{"f", "now"}));
  EXPECT_TRUE(tool_names_of(json::parse(with_tools("\"none\"")).as_object()).empty());
}

TEST_F(AnswerGrammarTest, WrongFieldsAreNamed) {
  const auto names = [&](const std::string& request, const char* part) {
    EXPECT_NE(error_of(request).find(part), std::string::npos) << error_of(request);
  };
  names(R"({"response_format": "json"})", "response_format");
  names(R"({"response_format": {"type": "xml"}})", "'xml'");
  names(R"({"response_format": {"type": "json_schema"}})", "json_schema.schema");
  names(R"({"response_format": {"type": "json_object"}, "tool_choice": 3})", "tool_choice");
  names(R"({"tool_choice": "required"})", "tool_choice");
  names(with_tools(R"({"type":"function","function":{"name":"g"}})"), "'g'");
  names(with_tools("\"required\""), "no form for calls");
  const std::string bad_name =
      R"({"tools":[{"function":{"name":"a b"}}],"tool_choice":"required"})";
  names(bad_name, "'a b'");
  const std::string bad_schema =
      R"({"tools":[{"function":{"name":"f","parameters":{"not":{}}}}],"tool_choice":"required"})";
  const std::string message = error_of(bad_schema, {ToolCallStyle::kTagged, ReasoningStyle::kNone});
  EXPECT_NE(message.find("parameters of tool 'f': schema at '#': 'not'"), std::string::npos)
      << message;
}

TEST_F(AnswerGrammarTest, AControlTokenComesWhereItIsNamedAndNowhereElse) {
  // In this vocabulary <|im_start|> is a control token; it stands for the family's marker.
  const std::string name = "<|im_start|>";
  const std::vector<std::string> controls = {"<|none|>", name};
  const TokenTable table(*model_.tokenizer, controls);
  ASSERT_EQ(table.control_index(name), 1);
  EXPECT_FALSE(table.control_index("<|none|>").has_value());
  const TokenId id = model_.tokenizer->encode_with_special(name).front();
  ASSERT_TRUE(model_.tokenizer->is_control(id));
  EXPECT_EQ(table.spelling(id), "\xFF\x01");
  EXPECT_EQ(table.control_tokens(controls), std::vector<TokenId>{id});
  const TokenTable unnamed(*model_.tokenizer, std::span<const std::string>());
  EXPECT_TRUE(unnamed.spelling(id).empty());
}

}  // namespace
}  // namespace winnow
