// From a conversation to token ids with the real models' templates and vocabularies: the
// chat-prompt and raw-prompt cases of tests/golden/tokenizer_cases.json.
#include <gtest/gtest.h>

#include "support/golden.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "weights/gguf.h"

namespace winnow {
namespace {

namespace json = boost::json;
using Ids = std::vector<TokenId>;

struct RealModel {
  std::unique_ptr<GgufFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
};

std::string path_of(std::string_view model) {
  return test::model_path(model == "gemma3" ? "gemma-3-270m-q4_k_m.gguf"
                                            : "smollm2-135m-instruct-q4_1.gguf");
}

RealModel opened(std::string_view model) {
  auto file = GgufFile::open(path_of(model));
  EXPECT_TRUE(file.ok()) << file.error().message;
  auto tokenizer = Tokenizer::create((*file)->metadata());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return {std::move(file).value(), std::move(tokenizer).value()};
}

std::string template_of(const json::object& input, const Metadata& metadata) {
  if (const json::value* given = input.if_contains("template"))
    return json::value_to<std::string>(*given);
  return metadata.string("tokenizer.chat_template").value();
}

RenderedText rendered(const json::object& input, const RealModel& model) {
  const auto parsed = ChatTemplate::parse(template_of(input, model.file->metadata()));
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  ChatTemplateInput conversation;
  conversation.messages = input.at("messages").as_array();
  conversation.bos_token = model.tokenizer->piece(*model.tokenizer->bos());
  conversation.eos_token = model.tokenizer->piece(*model.tokenizer->eos());
  auto text = parsed->render(conversation);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return std::move(text).value();
}

class ChatIds : public testing::TestWithParam<const char*> {};

TEST_P(ChatIds, EqualTheReference) {
  const std::string_view name = GetParam();
  SKIP_WITHOUT_MODEL(path_of(name));
  const RealModel model = opened(name);
  const json::value golden = test::load_golden("tokenizer_cases.json");
  int num_cases = 0;
  for (const json::value& one : golden.at("cases").as_array()) {
    const bool chat = one.at("kind").as_string() == "chat-prompt";
    if (!chat && one.at("kind").as_string() != "raw-prompt") continue;
    const json::object& input = one.at("input").as_object();
    if (input.at("model").as_string() != name) continue;
    SCOPED_TRACE(std::string(one.at("id").as_string()));
    ++num_cases;
    const Ids want = test::numbers<TokenId>(one.at("expected").at("ids"));
    if (!chat) {
      EXPECT_EQ(model.tokenizer->encode_raw_prompt(json::value_to<std::string>(input.at("text"))),
                want);
      continue;
    }
    const RenderedText text = rendered(input, model);
    EXPECT_EQ(model.tokenizer->encode(text), want);
    if (const json::value* exact = one.at("expected").as_object().if_contains("text")) {
      EXPECT_EQ(text.text, exact->as_string());
    }
  }
  EXPECT_GT(num_cases, 0);
}

INSTANTIATE_TEST_SUITE_P(RealModels, ChatIds, testing::Values("smollm2", "gemma3"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace winnow
