// Real models under constraints: what they write satisfies the schema, and is what they were asked.
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "constrain/answer_grammar.h"
#include "constrain/answer_parser.h"
#include "constrain/grammar_constraint.h"
#include "engine/engine.h"
#include "engine/sequence.h"
#include "support/json_checker.h"
#include "support/real_models.h"
#include "tokenizer/chat_template.h"

namespace winnow {
namespace {

namespace json = boost::json;

class ConstrainedModel : public testing::TestWithParam<const char*> {
 protected:
  void load(const std::string& path) {
    auto model = Model::load(path);
    ASSERT_TRUE(model.ok()) << model.error().message;
    model_ = *model;
    auto tokenizer = Tokenizer::create(model_->file().metadata());
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    tokenizer_ = *std::move(tokenizer);
    auto engine = Engine::create(model_, {.context_tokens = 1024});
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = *std::move(engine);
    const auto source = model_->file().metadata().string("tokenizer.chat_template");
    ASSERT_TRUE(source.ok());
    format_ = answer_format_of(*source);
    auto chat = ChatTemplate::parse(*source);
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    template_ = std::make_unique<ChatTemplate>(*std::move(chat));
    table_ = std::make_shared<const TokenTable>(*tokenizer_, answer_markers());
  }

  // The likeliest allowed token each time, for a chat request's question and rules.
  std::string answer(const json::object& request) {
    ChatTemplateInput input;
    input.messages = request.at("messages").as_array();
    if (request.contains("tools")) input.tools = request.at("tools").as_array();
    const auto rendered = template_->render(input);
    EXPECT_TRUE(rendered.ok()) << rendered.error().message;
    std::vector<TokenId> ids = tokenizer_->encode(*rendered);
    const auto rules = read_answer_rules(request);
    EXPECT_TRUE(rules.ok() && rules->has_value());
    const auto grammar = answer_grammar(**rules, format_, false, *table_);
    EXPECT_TRUE(grammar.ok()) << grammar.error().message;
    const auto ends = tokenizer_->end_tokens();
    GrammarConstraint constraint(*grammar, table_, {ends.begin(), ends.end()});
    const auto sequence = engine_->new_sequence();
    std::string text;
    for (int i = 0; i < 200; ++i) {
      const TokenId token = next_token(*sequence, ids, constraint);
      constraint.accept(token);
      if (std::find(ends.begin(), ends.end(), token) != ends.end()) return text;
      text += tokenizer_->piece(token);
      ids.push_back(token);
    }
    ADD_FAILURE() << "no end: " << text;
    return text;
  }

  TokenId next_token(Sequence& sequence, const std::vector<TokenId>& ids,
                     GrammarConstraint& constraint) {
    std::vector<float> logits;
    GenerateOptions options;
    options.max_new_tokens = 1;
    options.on_logits = [&](std::span<const float> found) {
      logits.assign(found.begin(), found.end());
    };
    EXPECT_TRUE(engine_->generate(sequence, ids, options).ok());
    constraint.mask(logits);
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }

  std::shared_ptr<const Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<ChatTemplate> template_;
  std::shared_ptr<const TokenTable> table_;
  AnswerFormat format_;
};

TEST_P(ConstrainedModel, WritesJsonThatSatisfiesTheSchema) {
  const std::string path = test::model_path(GetParam());
  SKIP_WITHOUT_MODEL(path);
  ASSERT_NO_FATAL_FAILURE(load(path));
  const json::object request = json::parse(R"({
    "messages": [{"role": "user", "content": "Describe a red apple as JSON."}],
    "response_format": {"type": "json_schema", "json_schema": {"name": "fruit", "schema": {
      "type": "object",
      "properties": {
        "name": {"type": "string", "maxLength": 20},
        "color": {"enum": ["red", "green", "yellow"]},
        "grams": {"type": "integer", "minimum": 1, "maximum": 1000},
        "tastes": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3}
      },
      "required": ["name", "color", "grams"], "additionalProperties": false}}}})")
                                   .as_object();
  const std::string text = answer(request);
  std::printf("%s\n", text.c_str());
  const json::value value = json::parse(text);
  EXPECT_TRUE(test::JsonChecker(request.at("response_format").at("json_schema").at("schema"))
                  .accepts(value))
      << text;
  EXPECT_EQ(value.at("color"), "red");
}

TEST_P(ConstrainedModel, CallsAToolThatIsDemanded) {
  const std::string path = test::model_path(GetParam());
  SKIP_WITHOUT_MODEL(path);
  ASSERT_NO_FATAL_FAILURE(load(path));
  if (format_.tool_calls == ToolCallStyle::kNone) {
    GTEST_SKIP() << "the chat template of " << GetParam() << " has no form for calls of tools";
  }
  const json::object request = json::parse(R"({
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": [{"type": "function", "function": {"name": "get_weather",
      "description": "The weather of a city",
      "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
                     "required": ["city"]}}}],
    "tool_choice": "required", "parallel_tool_calls": false})")
                                   .as_object();
  const std::string text = answer(request);
  std::printf("%s\n", text.c_str());
  const auto parser = make_answer_parser({format_, false, tool_names_of(request), 1});
  AnswerDelta found = parser->push(text);
  if (found.tool_calls.empty()) found = parser->finish();
  ASSERT_EQ(found.tool_calls.size(), 1U) << text;
  EXPECT_EQ(found.tool_calls[0].name, "get_weather");
  EXPECT_EQ(json::parse(found.tool_calls[0].arguments).at("city"), "Paris");
}

INSTANTIATE_TEST_SUITE_P(Models, ConstrainedModel,
                         testing::Values("smollm2-135m-instruct-q4_1.gguf",
                                         "qwen2.5-coder-0.5b-instruct.gguf"),
                         [](const auto& tested) { return std::string(tested.param).substr(0, 4); });

}  // namespace
}  // namespace winnow
