#include <gtest/gtest.h>

#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::ClientReply;
using test::TestServer;

constexpr const char* kResponsesPath = "/v1/responses";

// Takes "<r>...</r>" for reasoning and "<t>...</t>" for the arguments of a call.
class MarkedParser final : public AnswerParser {
 public:
  AnswerDelta push(std::string_view text) override {
    text_ += text;
    return {};
  }
  AnswerDelta finish() override {
    AnswerDelta delta;
    delta.reasoning = cut("<r>", "</r>");
    const std::string arguments = cut("<t>", "</t>");
    if (!arguments.empty()) {
      delta.tool_calls.push_back(
          {.index = 0, .id = "call_1", .name = "look", .arguments = arguments});
    }
    delta.content = text_;
    return delta;
  }

 private:
  std::string cut(std::string_view begin, std::string_view end) {
    const size_t first = text_.find(begin);
    const size_t last = text_.find(end);
    if (first == std::string::npos || last == std::string::npos) return {};
    const std::string inner = text_.substr(first + begin.size(), last - first - begin.size());
    text_.erase(first, last + end.size() - first);
    return inner;
  }

  std::string text_;
};

struct NamedEvent {
  std::string name;
  json::value data;
};

std::vector<NamedEvent> named_events(const ClientReply& reply) {
  std::vector<NamedEvent> events;
  std::string_view rest = reply.body;
  while (!rest.empty()) {
    const size_t end = rest.find("\n\n");
    const std::string_view event = rest.substr(0, end);
    rest.remove_prefix(end + 2);
    const size_t line = event.find('\n');
    EXPECT_TRUE(event.starts_with("event: ")) << event;
    EXPECT_TRUE(event.substr(line + 1).starts_with("data: ")) << event;
    events.push_back(
        {std::string(event.substr(7, line - 7)), json::parse(std::string(event.substr(line + 7)))});
    EXPECT_EQ(events.back().data.at("type").as_string(), events.back().name);
    EXPECT_EQ(events.back().data.at("sequence_number").as_int64(),
              static_cast<int64_t>(events.size() - 1));
  }
  return events;
}

TEST(Responses, AnswerTextAndConversations) {
  TestServer server;
  const ClientReply reply =
      server.post(kResponsesPath, json::object{{"input", "Hi"}, {"instructions", "Be brief."}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value body = reply.json();
  EXPECT_EQ(body.at("object"), "response");
  EXPECT_EQ(body.at("status"), "completed");
  EXPECT_TRUE(body.at("id").as_string().starts_with("resp_"));
  const json::value& item = body.at("output").at(0);
  EXPECT_EQ(item.at("type"), "message");
  EXPECT_EQ(item.at("content").at(0).at("type"), "output_text");
  EXPECT_EQ(item.at("content").at(0).at("text"), "Hello, world");
  const json::value& usage = body.at("usage");
  EXPECT_EQ(usage.at("total_tokens").as_int64(),
            usage.at("input_tokens").as_int64() + usage.at("output_tokens").as_int64());
  const auto prompt = [&server] {
    return server.tokenizer().decode(server.service().last_request().prompt, false);
  };
  EXPECT_EQ(prompt(), "[system]Be brief.\n[user]Hi\n[assistant]");
  const json::value items = json::parse(R"([
      {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "A"}]},
      {"role": "user", "content": "B"},
      {"type": "reasoning", "summary": []},
      {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "C"}]},
      {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "1", "output": "D"}])");
  EXPECT_EQ(server
                .post(kResponsesPath, json::object{{"input", items},
                                                   {"instructions", "S"},
                                                   {"tools", {{{"type", "web_search"}}}}})
                .status,
            200);
  EXPECT_EQ(prompt(), "[system]S\n\nA\n[user]B\n[assistant]C\n[tool]D\n[assistant]");
}

TEST(Responses, EventsTellTheSameInOrder) {
  TestServer server;
  const ClientReply reply =
      server.post(kResponsesPath, json::object{{"input", "Hi"}, {"stream", true}});
  EXPECT_EQ(reply.header("Content-Type"), "text/event-stream; charset=utf-8");
  const std::vector<NamedEvent> events = named_events(reply);
  std::string text;
  std::vector<std::string> order;
  for (const NamedEvent& event : events) {
    if (event.name != "response.output_text.delta") {
      order.push_back(event.name);
      continue;
    }
    text += std::string(event.data.at("delta").as_string());
    EXPECT_TRUE(event.data.at("logprobs").as_array().empty());
    EXPECT_EQ(event.data.at("output_index").as_int64(), 0);
    EXPECT_EQ(event.data.at("content_index").as_int64(), 0);
    EXPECT_TRUE(event.data.at("item_id").is_string());
  }
  EXPECT_EQ(text, "Hello, world");
  EXPECT_EQ(order,
            (std::vector<std::string>{"response.created", "response.in_progress",
                                      "response.output_item.added", "response.content_part.added",
                                      "response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"}));
  EXPECT_EQ(events.back().data.at("response").at("output").at(0).at("content").at(0).at("text"),
            "Hello, world");
}

TEST(Responses, ReasoningAndCallsAreItemsOfTheirOwn) {
  TestServer server({.answer = "<r>think</r><t>{}</t>done",
                     .parsers = [](const AnswerParserOptions&) -> std::unique_ptr<AnswerParser> {
                       return std::make_unique<MarkedParser>();
                     }});
  const json::value body = server.post(kResponsesPath, json::object{{"input", "Hi"}}).json();
  const json::array& output = body.at("output").as_array();
  ASSERT_EQ(output.size(), 3U);
  EXPECT_EQ(output[0].at("type"), "reasoning");
  EXPECT_EQ(output[0].at("content").at(0).at("text"), "think");
  EXPECT_EQ(output[1].at("type"), "message");
  EXPECT_EQ(output[2].at("type"), "function_call");
  EXPECT_EQ(output[2].at("call_id"), "call_1");
  EXPECT_EQ(output[2].at("arguments"), "{}");
  const json::value chat = server.post("/v1/chat/completions", test::chat_body()).json();
  const json::value& choice = chat.at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_EQ(choice.at("message").at("reasoning_content"), "think");
  EXPECT_EQ(choice.at("message").at("reasoning"), "think");
  EXPECT_EQ(choice.at("message").at("tool_calls").at(0).at("function").at("name"), "look");
}

TEST(Responses, AnAnswerCutShortIsIncomplete) {
  TestServer server;
  for (const bool stream : {false, true}) {
    const ClientReply reply =
        server.post(kResponsesPath,
                    json::object{{"input", "Hi"}, {"max_output_tokens", 2}, {"stream", stream}});
    const json::value body = stream ? named_events(reply).back().data.at("response") : reply.json();
    EXPECT_EQ(body.at("status"), "incomplete");
    EXPECT_EQ(body.at("incomplete_details").at("reason"), "max_output_tokens");
  }
}

TEST(Responses, AnErrorInTheMiddleIsAFailedResponse) {
  TestServer server;
  server.service().fail_next(fail(ErrorCode::kNumerical, "logits: expected numbers, found NaN"));
  const auto events =
      named_events(server.post(kResponsesPath, json::object{{"input", "Hi"}, {"stream", true}}));
  EXPECT_EQ(events.back().name, "response.failed");
  EXPECT_EQ(events.back().data.at("response").at("error").at("code"), "numerical");
}

TEST(Responses, FieldsOfOtherEndpointsAreUnknown) {
  TestServer server;
  const json::object body{{"input", "Hi"}, {"n", 1000000}, {"best_of", "many"},
                          {"stop", 5},     {"echo", 1},    {"logit_bias", "none"}};
  EXPECT_EQ(server.post(kResponsesPath, body).status, 200);
  EXPECT_EQ(server.service().num_submitted(), 1U);
}

TEST(Responses, WhatIsNotSupportedIsRefused) {
  TestServer server;
  for (const json::object& body :
       {json::object{}, json::object{{"input", 5}}, json::object{{"input", json::array()}},
        json::object{{"input", {5}}}, json::object{{"input", {{{"role", "nobody"}}}}},
        json::object{{"input", "Hi"}, {"previous_response_id", "resp_1"}},
        json::object{{"input", "Hi"}, {"text", {{"format", {{"type", "yaml"}}}}}},
        json::object{{"input", {{{"role", "user"}, {"content", {{{"type", "input_image"}}}}}}}}}) {
    EXPECT_EQ(server.post(kResponsesPath, body).status, 400) << json::serialize(body);
  }
  EXPECT_EQ(server.service().num_submitted(), 0U);
}

}  // namespace
}  // namespace winnow
