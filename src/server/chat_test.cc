#include <gtest/gtest.h>

#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::chat_body;
using test::ClientReply;
using test::kChatPath;
using test::TestServer;

json::object with(json::object body, std::string_view name, json::value value) {
  body[name] = std::move(value);
  return body;
}

// The texts of a stream's deltas, put together; every chunk is checked.
std::string streamed_text(const ClientReply& reply) {
  std::string text;
  const std::vector<std::string> events = reply.events();
  EXPECT_EQ(events.back(), "[DONE]");
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value chunk = json::parse(events[i]);
    EXPECT_EQ(chunk.at("object").as_string(), "chat.completion.chunk");
    for (const json::value& choice : chunk.at("choices").as_array()) {
      const json::value* content = choice.at("delta").as_object().if_contains("content");
      if (content != nullptr) text += std::string(content->as_string());
    }
  }
  return text;
}

TEST(Chat, AnswersWithTheModelsText) {
  TestServer server;
  const ClientReply reply = server.post(kChatPath, chat_body());
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.header("Content-Type"), "application/json");
  const json::value body = reply.json();
  EXPECT_EQ(body.at("object").as_string(), "chat.completion");
  EXPECT_EQ(body.at("model").as_string(), "tiny");
  EXPECT_TRUE(body.at("id").as_string().starts_with("chatcmpl-"));
  const json::value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("role").as_string(), "assistant");
  EXPECT_EQ(choice.at("message").at("content").as_string(), "Hello, world");
  EXPECT_EQ(choice.at("finish_reason").as_string(), "stop");
  EXPECT_TRUE(choice.at("logprobs").is_null());
  const json::value& usage = body.at("usage");
  EXPECT_EQ(usage.at("total_tokens").as_int64(),
            usage.at("prompt_tokens").as_int64() + usage.at("completion_tokens").as_int64());
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens").as_int64(), 0);
  EXPECT_EQ(body.at("timings").at("queue_ms").as_double(), 125);
}

TEST(Chat, TheTemplateAndItsOptionsShapeThePrompt) {
  TestServer server;
  const auto prompt_text = [&server] {
    return server.tokenizer().decode(server.service().last_request().prompt, false);
  };
  server.post(kChatPath, chat_body("Hi"));
  EXPECT_EQ(prompt_text(), "[user]Hi\n[assistant]");
  server.post(kChatPath, with(chat_body("Hi"), "add_generation_prompt", false));
  EXPECT_EQ(prompt_text(), "[user]Hi\n");
  json::object body = with(chat_body("Hi"), "continue_final_message", true);
  body["messages"].as_array().push_back(json::object{{"role", "assistant"}, {"content", "Well, "}});
  server.post(kChatPath, body);
  EXPECT_EQ(prompt_text(), "[user]Hi\n[assistant]Well, ");
  body["add_generation_prompt"] = true;
  EXPECT_EQ(server.post(kChatPath, body).status, 400);
  server.post(kChatPath, with(chat_body("Hello"), "truncate_prompt_tokens", 2));
  EXPECT_EQ(server.service().last_request().prompt.size(), 2U);
}

TEST(Chat, FieldsReachTheEngine) {
  TestServer server;
  json::object body = chat_body();
  body["temperature"] = 0.5;
  body["top_k"] = 7;
  body["top_p"] = 0.75;
  body["min_p"] = 0.25;
  body["seed"] = 42;
  body["repetition_penalty"] = 1.5;
  body["presence_penalty"] = 0.5;
  body["frequency_penalty"] = -0.5;
  body["logit_bias"] = json::object{{"5", 2.5}};
  body["max_tokens"] = 3;
  body["max_completion_tokens"] = 4;
  body["min_tokens"] = 2;
  body["stop_token_ids"] = json::array{11};
  body["ignore_eos"] = true;
  body["attention"] = "sparse";
  body["cache_prompt"] = false;
  ASSERT_EQ(server.post(kChatPath, body).status, 200);
  const ServiceRequest request = server.service().last_request();
  EXPECT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.top_p, 0.75F);
  EXPECT_EQ(request.sampling.min_p, 0.25F);
  EXPECT_EQ(request.sampling.seed, 42U);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5F);
  EXPECT_EQ(request.sampling.presence_penalty, 0.5F);
  EXPECT_EQ(request.sampling.frequency_penalty, -0.5F);
  EXPECT_EQ(request.sampling.logit_bias, (std::vector<std::pair<TokenId, float>>{{5, 2.5F}}));
  EXPECT_EQ(request.max_new_tokens, 4) << "max_completion_tokens wins";
  EXPECT_EQ(request.min_new_tokens, 2);
  EXPECT_EQ(request.end_tokens, std::vector<TokenId>{11});
  ASSERT_TRUE(request.sparse.has_value());
  EXPECT_EQ(request.sparse->min_tokens, 0);
  EXPECT_FALSE(request.read_cache);
  body["attention"] = "dense";
  server.post(kChatPath, body);
  EXPECT_FALSE(server.service().last_request().sparse.has_value());
  server.post(kChatPath, chat_body());
  EXPECT_EQ(server.service().last_request().sparse->min_tokens, 4096) << "auto";
  EXPECT_EQ(server.service().last_request().sampling.temperature, 1);
}

TEST(Chat, AStreamIsStrictlyFramedAndSaysTheSame) {
  TestServer server;
  const ClientReply reply = server.post(kChatPath, with(chat_body(), "stream", true));
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("Content-Type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(reply.header("Cache-Control"), "no-cache");
  EXPECT_EQ(reply.header("X-Accel-Buffering"), "no");
  EXPECT_EQ(reply.body.find('\r'), std::string::npos);
  EXPECT_EQ(reply.body.find("event:"), std::string::npos);
  EXPECT_TRUE(reply.body.ends_with("\n\ndata: [DONE]\n\n"));
  EXPECT_EQ(streamed_text(reply), "Hello, world");
  const std::vector<std::string> events = reply.events();
  const json::value first = json::parse(events.front());
  EXPECT_EQ(first.at("choices").at(0).at("delta").at("role").as_string(), "assistant");
  EXPECT_EQ(first.at("choices").at(0).at("delta").at("content").as_string(), "");
  const json::value last = json::parse(events[events.size() - 2]);
  EXPECT_TRUE(last.at("choices").at(0).at("delta").as_object().empty());
  EXPECT_EQ(last.at("choices").at(0).at("finish_reason").as_string(), "stop");
  EXPECT_TRUE(last.at("timings").is_object());
  for (size_t i = 0; i + 2 < events.size(); ++i) {
    EXPECT_TRUE(json::parse(events[i]).at("choices").at(0).at("finish_reason").is_null());
  }
}

TEST(Chat, TheUsageChunkComesOnlyWhenAskedFor) {  // stream-usage-chunk
  TestServer server;
  for (const int n : {1, 2}) {
    for (const char* options : {"null", "{}", R"({"include_usage": false})",
                                R"({"include_usage": null})", R"({"include_usage": true})"}) {
      json::object body = with(with(chat_body(), "stream", true), "n", n);
      body["stream_options"] = json::parse(options);
      const std::vector<std::string> events = server.post(kChatPath, body).events();
      const bool wanted = std::string_view(options).find("true") != std::string_view::npos;
      int num_usage = 0;
      for (size_t i = 0; i + 1 < events.size(); ++i) {
        const json::value chunk = json::parse(events[i]);
        if (!chunk.at("choices").as_array().empty()) continue;
        ++num_usage;
        EXPECT_EQ(i + 2, events.size()) << "right before [DONE]";
        EXPECT_GT(chunk.at("usage").at("completion_tokens").as_int64(), 0);
      }
      EXPECT_EQ(num_usage, wanted ? 1 : 0) << options;
    }
  }
}

TEST(Chat, ContinuousUsageGrowsWithEveryChunk) {
  TestServer server;
  json::object body = with(chat_body(), "stream", true);
  body["stream_options"] = {{"include_usage", true}, {"continuous_usage_stats", true}};
  const std::vector<std::string> events = server.post(kChatPath, body).events();
  int64_t last = 0;
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value chunk = json::parse(events[i]);
    const int64_t count = chunk.at("usage").at("completion_tokens").as_int64();
    EXPECT_GE(count, last);
    last = count;
  }
  EXPECT_GT(last, 1);
}

TEST(Chat, StopStringsCutStreamedAndWholeAnswersAlike) {  // stop-spans-tokens
  TestServer server;
  const std::string whole = "Hello, world";
  for (size_t begin = 0; begin < whole.size(); ++begin) {
    for (size_t length = 1; begin + length <= whole.size(); length += 2) {
      const std::string stop = whole.substr(begin, length);
      const std::string expected = whole.substr(0, whole.find(stop));
      json::object body = with(chat_body(), "stop", json::value(stop));
      const json::value reply = server.post(kChatPath, body).json();
      EXPECT_EQ(reply.at("choices").at(0).at("message").at("content").as_string(), expected);
      EXPECT_EQ(reply.at("choices").at(0).at("finish_reason").as_string(), "stop");
      EXPECT_EQ(reply.at("choices").at(0).at("stop_reason").as_string(), stop);
      EXPECT_EQ(streamed_text(server.post(kChatPath, with(body, "stream", true))), expected);
    }
  }
  const json::object body =
      with(with(chat_body(), "stop", {"ld", "o, w"}), "include_stop_str_in_output", true);
  EXPECT_EQ(server.post(kChatPath, body).json().at("choices").at(0).at("message").at("content"),
            "Hello, w");
  EXPECT_EQ(streamed_text(server.post(kChatPath, with(body, "stream", true))), "Hello, w");
}

TEST(Chat, AnAnswerThatStopsAtItsFirstTokenIsComplete) {  // stop-at-first-token
  TestServer server({.answer = "x"});
  const TokenId first = server.tokenizer().encode("x").front();
  for (const json::object& body :
       {with(chat_body(), "stop", "x"), with(chat_body(), "stop_token_ids", json::array{first})}) {
    const json::value reply = server.post(kChatPath, body).json();
    EXPECT_EQ(reply.at("choices").at(0).at("message").at("content"), "");
    EXPECT_EQ(reply.at("choices").at(0).at("finish_reason"), "stop");
    json::object streamed = with(body, "stream", true);
    streamed["stream_options"] = {{"include_usage", true}};
    const ClientReply stream = server.post(kChatPath, streamed);
    EXPECT_EQ(streamed_text(stream), "");
    const std::vector<std::string> events = stream.events();
    EXPECT_EQ(json::parse(events[events.size() - 2]).at("usage").at("completion_tokens"),
              reply.at("usage").at("completion_tokens"));
    int num_finished = 0;
    for (size_t i = 0; i + 2 < events.size(); ++i) {
      const json::value chunk = json::parse(events[i]);
      if (!chunk.at("choices").at(0).at("finish_reason").is_null()) ++num_finished;
    }
    EXPECT_EQ(num_finished, 1);
  }
  server.service().wait_for_requests(0);
}

TEST(Chat, LogprobsHaveAsManyAlternativesAsAskedFor) {  // samp-logprobs-count
  TestServer server;
  for (const int count : {0, 1, 5, 20}) {
    json::object body = with(chat_body(), "logprobs", true);
    if (count > 0) body["top_logprobs"] = count;
    const json::value reply = server.post(kChatPath, body).json();
    const json::array& content = reply.at("choices").at(0).at("logprobs").at("content").as_array();
    EXPECT_EQ(content.size(), server.tokenizer().encode("Hello, world").size());
    for (const json::value& token : content) {
      EXPECT_EQ(token.at("top_logprobs").as_array().size(), static_cast<size_t>(count));
      EXPECT_EQ(token.at("logprob").as_double(), -0.25);
    }
    json::array streamed;
    const std::vector<std::string> events =
        server.post(kChatPath, with(body, "stream", true)).events();
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      const json::value chunk = json::parse(events[i]);
      const json::value& logprobs = chunk.at("choices").at(0).at("logprobs");
      if (logprobs.is_null()) continue;
      for (const json::value& token : logprobs.at("content").as_array()) streamed.push_back(token);
    }
    EXPECT_EQ(streamed, content);
  }
  for (const int count : {21, -1}) {
    json::object body = with(with(chat_body(), "logprobs", true), "top_logprobs", count);
    EXPECT_EQ(server.post(kChatPath, body).status, 400);
  }
  EXPECT_EQ(server.post(kChatPath, with(chat_body(), "top_logprobs", 2)).status, 400);
}

TEST(Chat, ChoicesHaveTheirOwnSeedsAndIndices) {  // limit-n-choices
  TestServer server;
  json::object body = with(with(chat_body(), "n", 2), "seed", 7);
  const json::value reply = server.post(kChatPath, body).json();
  ASSERT_EQ(reply.at("choices").as_array().size(), 2U);
  EXPECT_EQ(reply.at("choices").at(1).at("index").as_int64(), 1);
  EXPECT_NE(server.service().last_request().sampling.seed, 7U);
  const auto tokens = static_cast<int64_t>(server.service().last_request().prompt.size());
  EXPECT_EQ(reply.at("usage").at("prompt_tokens").as_int64(), tokens) << "the prompt counts once";
  const uint64_t before = server.service().num_submitted();
  for (const int64_t n : {int64_t{0}, int64_t{17}, int64_t{129}, int64_t{1000000000}}) {
    const ClientReply refused = server.post(kChatPath, with(chat_body(), "n", n));
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(refused.json().at("error").at("param").as_string(), "n");
  }
  EXPECT_EQ(server.service().num_submitted(), before);
}

TEST(Chat, ALongPromptReportsItsProgressWhenAsked) {
  TestServer server({.context_tokens = 100000});
  std::string text;
  for (int i = 0; i < 600; ++i) text += "word ";
  json::object body = with(with(chat_body(text), "stream", true), "return_progress", true);
  const std::vector<std::string> events = server.post(kChatPath, body).events();
  const json::value first = json::parse(events.front());
  EXPECT_TRUE(first.at("choices").as_array().empty());
  const json::value& progress = first.at("prompt_progress");
  EXPECT_EQ(progress.at("processed").as_int64(), test::FakeService::kChunkTokens);
  EXPECT_GT(progress.at("total").as_int64(), 1000);
  EXPECT_EQ(progress.at("cache").as_int64(), 0);
  EXPECT_EQ(progress.at("time_ms").as_double(), 500);
  EXPECT_EQ(
      server.post(kChatPath, with(chat_body(text), "stream", true)).body.find("prompt_progress"),
      std::string::npos);
}

TEST(Chat, PingsFillASilentStream) {
  TestServer server;
  server.service().hold(true);
  auto client = server.connect();
  client->send_request(
      "POST", kChatPath,
      json::serialize(with(with(chat_body(), "stream", true), "sse_ping_interval", 0.1)));
  EXPECT_TRUE(client->read_until(": ping\n\n"));
  server.service().hold(false);
  EXPECT_TRUE(client->read_until("data: [DONE]\n\n"));
}

TEST(Chat, AnErrorInTheMiddleEndsTheStreamWithAnEvent) {
  TestServer server;
  server.service().fail_next(fail(ErrorCode::kNumerical, "logits: expected numbers, found NaN"));
  const ClientReply reply = server.post(kChatPath, with(chat_body(), "stream", true));
  ASSERT_EQ(reply.status, 200);
  const std::vector<std::string> events = reply.events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back(), "[DONE]");
  const json::value error = json::parse(events[events.size() - 2]);
  EXPECT_EQ(error.at("error").at("code").as_string(), "numerical");
  server.service().fail_next(fail(ErrorCode::kNumerical, "logits: expected numbers, found NaN"));
  const ClientReply whole = server.post(kChatPath, chat_body());
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.header("x-should-retry"), "false");
  EXPECT_EQ(server.post(kChatPath, chat_body()).status, 200);
}

TEST(Chat, AFormOfTheAnswerBecomesAConstraint) {
  TestServer server;
  const json::object schema{{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}};
  const json::object named{{"name", "x"}, {"schema", schema}};
  for (const json::object& body :
       {with(chat_body(), "response_format", {{"type", "json_object"}}),
        with(chat_body(), "response_format",
             json::object{{"type", "json_schema"}, {"json_schema", named}}),
        with(chat_body(), "json_schema", schema),
        with(chat_body(), "grammar", "root ::= [a-z]+")}) {
    const ClientReply reply = server.post(kChatPath, body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_TRUE(server.service().last_had_constraint());
    EXPECT_EQ(server.post(kChatPath, with(body, "min_tokens", 2)).status, 400);
    EXPECT_EQ(server.post(kChatPath, with(body, "ignore_eos", true)).status, 400);
    json::object completion = body;
    completion["prompt"] = "a";
    EXPECT_EQ(server.post("/v1/completions", completion).status, 200);
    EXPECT_TRUE(server.service().last_had_constraint());
  }
  server.post(kChatPath, with(chat_body(), "response_format", {{"type", "text"}}));
  EXPECT_FALSE(server.service().last_had_constraint());
  server.post(kChatPath, with(chat_body(), "grammar", ""));
  EXPECT_FALSE(server.service().last_had_constraint());
  const json::object text{{"format", {{"type", "json_schema"}, {"name", "x"}, {"schema", schema}}}};
  EXPECT_EQ(server.post("/v1/responses", json::object{{"input", "Hi"}, {"text", text}}).status,
            200);
  EXPECT_TRUE(server.service().last_had_constraint());
}

TEST(Chat, WhatCannotBeEnforcedIsRefused) {
  TestServer server;
  const json::object schema{{"type", "object"}, {"not", json::object{}}};
  for (const json::object& body :
       {with(chat_body(), "response_format", {{"type", "yaml"}}),
        with(chat_body(), "response_format", {{"type", "json_schema"}}),
        with(chat_body(), "json_schema", schema), with(chat_body(), "grammar", "root ::= ("),
        with(chat_body(), "tool_choice", "required"), with(chat_body(), "tool_choice", "perhaps"),
        with(chat_body(), "chat_template", "{{ 1 }}")}) {
    const ClientReply reply = server.post(kChatPath, body);
    EXPECT_EQ(reply.status, 400) << json::serialize(body) << reply.body;
    EXPECT_EQ(reply.json().at("error").at("type").as_string(), "invalid_request_error");
  }
  EXPECT_EQ(server.service().num_submitted(), 0U);
}

TEST(Chat, AGrammarThatIsWrongIsNamedWithItsPlace) {
  TestServer server;
  const char* wrong = "root ::= num\nnum ::= [0-9";
  const json::object beside{{"grammar", "root ::= \"a\""}, {"json_schema", json::object{}}};
  for (json::object body : {json::object{{"grammar", wrong}}, beside}) {
    body["prompt"] = "a";
    body["messages"] = chat_body().at("messages");
    for (const char* path : {kChatPath, "/v1/completions"}) {
      const ClientReply reply = server.post(path, body);
      EXPECT_EQ(reply.status, 400) << reply.body;
      const json::value error = reply.json().at("error");
      EXPECT_EQ(error.at("param").as_string(), "grammar");
      const std::string_view expected =
          body.contains("json_schema") ? "json_schema" : "line 2, column 13";
      EXPECT_NE(error.at("message").as_string().find(expected), json::string::npos) << reply.body;
    }
  }
}

json::array weather_tool() {
  const json::object function{
      {"name", "weather"},
      {"parameters", {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}}}};
  return {json::object{{"type", "function"}, {"function", function}}};
}

TEST(Chat, CallsOfToolsAreTakenOutOfTheText) {
  TestServer server({.answer = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
                               "\"Oslo\"}}\n</tool_call>",
                     .chat_template = "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
                                      "{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                                      "{% endfor %}{# <tool_call></tool_call> #}[assistant]"
                                      "{{ '' if tools else '<tool_call>'[:0] }}"});
  const json::object body = with(chat_body(), "tools", weather_tool());
  const ClientReply reply = server.post(kChatPath, body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json::value choice = reply.json().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_TRUE(choice.at("message").at("content").is_null());
  const json::value call = choice.at("message").at("tool_calls").at(0);
  EXPECT_EQ(call.at("type"), "function");
  EXPECT_EQ(call.at("function").at("name"), "weather");
  EXPECT_EQ(json::parse(call.at("function").at("arguments").as_string()).at("city"), "Oslo");
  std::string name;
  const std::vector<std::string> events =
      server.post(kChatPath, with(body, "stream", true)).events();
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value chunk = json::parse(events[i]);
    const json::object& delta = chunk.at("choices").at(0).at("delta").as_object();
    if (const json::value* calls = delta.if_contains("tool_calls")) {
      name += std::string(calls->at(0).at("function").at("name").as_string());
      EXPECT_EQ(calls->at(0).at("index").as_int64(), 0);
      EXPECT_TRUE(calls->at(0).at("id").is_string());
    }
  }
  EXPECT_EQ(name, "weather");
  EXPECT_EQ(json::parse(events[events.size() - 2]).at("choices").at(0).at("finish_reason"),
            "tool_calls");
  server.post(kChatPath, with(body, "tool_choice", "required"));
  EXPECT_TRUE(server.service().last_had_constraint());
  const json::value none = server.post(kChatPath, with(body, "tool_choice", "none")).json();
  EXPECT_EQ(none.at("choices").at(0).at("finish_reason"), "stop");
}

TEST(Chat, ABaseModelHoldsNoConversation) {
  TestServer server({.chat = false});
  const ClientReply reply = server.post(kChatPath, chat_body());
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("/v1/completions"), std::string::npos);
}

TEST(Chat, CacheScopesDifferByUserAndSalt) {  // iso-prefix-cache-tenants
  TestServer server;
  std::vector<std::string> scopes;
  for (const json::object& body :
       {chat_body(), with(chat_body(), "user", "ab"), with(chat_body(), "cache_salt", "ab"),
        with(with(chat_body(), "user", "a"), "cache_salt", "b"),
        with(with(chat_body(), "user", "1:a"), "cache_salt", "b")}) {
    server.post(kChatPath, body);
    scopes.push_back(server.service().last_request().cache_scope);
  }
  std::sort(scopes.begin(), scopes.end());
  EXPECT_EQ(std::unique(scopes.begin(), scopes.end()), scopes.end());
}

TEST(Chat, TokenIdsAreReturnedOnRequest) {
  TestServer server;
  const json::object body = with(chat_body(), "return_token_ids", true);
  const json::value reply = server.post(kChatPath, body).json();
  EXPECT_EQ(reply.at("choices").at(0).at("token_ids").as_array().size(),
            server.tokenizer().encode("Hello, world").size());
  EXPECT_EQ(reply.at("prompt_token_ids").as_array().size(),
            server.service().last_request().prompt.size());
}

}  // namespace
}  // namespace winnow
