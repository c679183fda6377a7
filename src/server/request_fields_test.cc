#include "server/request_fields.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "server/routes.h"
#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::chat_body;
using test::ClientReply;
using test::kChatPath;
using test::TestServer;

ClientReply post_field(TestServer& server, const std::string& name, const std::string& value,
                       bool stream = false) {
  return server.connect()->post(
      kChatPath, std::string_view("{\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}], "
                                  "\"stream\": " +
                                  std::string(stream ? "true" : "false") + ", \"" + name +
                                  "\": " + value + "}"));
}

void expect_status(TestServer& server, const std::string& name, const std::string& value,
                   int status) {
  const ClientReply reply = post_field(server, name, value);
  EXPECT_EQ(reply.status, status) << name << " " << value << reply.body;
  if (status != 400 || reply.status != 400) return;
  EXPECT_EQ(reply.json().at("error").at("param"), json::value(name)) << reply.body;
}

TEST(RequestFields, SamplingFieldsHaveBounds) {  // samp-edge-parameters
  TestServer server({.answer = "ab"});
  const int vocab = server.tokenizer().vocab_size();
  const std::vector<std::pair<std::string, std::vector<std::string>>> good = {
      {"temperature", {"0", "1e-6", "1", "2", "null"}},
      {"top_p", {"0", "1e-9", "1", "null"}},
      {"top_k", {"-1", "0", "1", std::to_string(vocab), std::to_string(vocab + 1), "5.0"}},
      {"min_p", {"0", "1"}},
      {"repetition_penalty", {"1", "1.5", "0.1"}},
      {"seed", {"0", "-1", "9223372036854775807"}}};
  const std::vector<std::pair<std::string, std::vector<std::string>>> bad = {
      {"temperature", {"-1", "1e9", "\"1\"", "true", "[]"}},
      {"top_p", {"1.1", "-0.1"}},
      {"min_p", {"-0.1", "1.1"}},
      {"top_k", {"-2", "1.5", "9223372036854775808"}},
      {"repetition_penalty", {"0", "-1", "101"}},
      {"seed", {"1.5", "\"5\"", "18446744073709551615"}},
      {"presence_penalty", {"-101", "101"}},
      {"stream", {"1", "\"true\""}},
      {"stop", {"5", "[5]", "{}"}},
      {"messages", {"5", "{}", "[]", "null"}},
      {"tools", {"5", "{}", "[5]"}},
      {"chat_template_kwargs", {"[]"}},
      {"attention", {"\"full\"", "5"}},
      {"stop_token_ids", {"[-1]", "[1.5]", "[\"a\"]", "[999999999]", "5"}}};
  for (const auto& [name, values] : good) {
    for (const std::string& value : values) expect_status(server, name, value, 200);
  }
  for (const auto& [name, values] : bad) {
    for (const std::string& value : values) expect_status(server, name, value, 400);
  }
  EXPECT_EQ(post_field(server, "temperature", "1e400").status, 400);
}

TEST(RequestFields, LogitBiasesNameKnownTokens) {  // samp-logit-bias-range
  TestServer server;
  const int vocab = server.tokenizer().vocab_size();
  for (const std::string& value :
       {"{\"" + std::to_string(vocab) + "\":5}", std::string("{\"-1\":5}"),
        std::string("{\"99999999999\":1}"), std::string("{\"abc\":1}"),
        std::string("{\"5\":1e308}"), std::string("{\"5\":\"x\"}"), std::string("{\"5 \":1}"),
        std::string("[]")}) {
    expect_status(server, "logit_bias", value, 400);
  }
  json::object all;
  for (int id = 0; id < vocab; ++id) all[std::to_string(id)] = -100;
  expect_status(server, "logit_bias", json::serialize(all), 200);
  for (int id = vocab; id < vocab + 100000; ++id) all[std::to_string(id)] = -100;
  expect_status(server, "logit_bias", json::serialize(all), 400);
  EXPECT_EQ(server.post(kChatPath, chat_body()).status, 200);
}

TEST(RequestFields, MaxTokensIsAWholeNumber) {  // limit-max-tokens
  TestServer server({.context_tokens = 64});
  for (const char* value : {"0", "1", "64", "2147483647", "null", "1.0"}) {
    expect_status(server, "max_tokens", value, 200);
  }
  for (const char* value : {"-1", "9223372036854775808", "\"5\"", "1.5", "true"}) {
    expect_status(server, "max_tokens", value, 400);
  }
  EXPECT_EQ(post_field(server, "max_tokens", "1e400").status, 400);
  const json::value none = post_field(server, "max_tokens", "0").json();
  EXPECT_EQ(none.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(none.at("choices").at(0).at("message").at("content"), "");
}

TEST(RequestFields, UnknownFieldsAndNullsAreIgnored) {
  TestServer server;
  json::object body = chat_body();
  body["whatever"] = {{"a", {1, 2, 3}}};
  body["metadata"] = nullptr;
  body["echo"] = "not known to chats";
  for (const FieldRule& rule : field_rules()) {
    if (rule.name != "messages") body[rule.name] = nullptr;
  }
  const ClientReply reply = server.post(kChatPath, body);
  EXPECT_EQ(reply.status, 200) << reply.body;
}

TEST(RequestFields, DeepNestingIsRefusedWhereverItIs) {  // json-deep-nesting
  TestServer server;
  for (const size_t depth : {size_t{70}, size_t{1000}, size_t{100000}, size_t{1000000}}) {
    const std::string lists = std::string(depth, '[') + std::string(depth, ']');
    std::string objects;
    for (size_t i = 0; i < depth; ++i) objects += "{\"a\":";
    objects += "1" + std::string(depth, '}');
    for (const char* name : {"whatever", "tools", "response_format"}) {
      EXPECT_EQ(post_field(server, name, lists).status, 400);
      EXPECT_EQ(post_field(server, name, objects).status, 400);
    }
    EXPECT_EQ(server.connect()->post(kChatPath, std::string_view(std::string(depth, '['))).status,
              400);
    EXPECT_EQ(server.connect()
                  ->post(kChatPath, std::string_view("{\"messages\": [{\"role\": \"user\", "
                                                     "\"content\": " +
                                                     lists + "}]}"))
                  .status,
              400);
  }
  EXPECT_EQ(post_field(server, "whatever", std::string(60, '[') + std::string(60, ']')).status,
            200);
}

TEST(RequestFields, TextMustBeUtf8) {  // json-invalid-utf8
  TestServer server;
  for (const std::string& bytes :
       {std::string("\xC3\x28"), std::string("\xFF"), std::string("\xC0\xAF"),
        std::string("\xE2\x82"), std::string("\xED\xA0\x80"), std::string("\xF4\x90\x80\x80")}) {
    for (const std::string& body :
         {R"({"messages": [{"role": "user", "content": ")" + bytes + "\"}]}",
          R"({"messages": [{"role": "user", "content": "a"}], ")" + bytes + "\": 1}",
          R"({"messages": [{"role": "user", "content": "a"}], "model": ")" + bytes + "\"}"}) {
      const ClientReply reply = server.connect()->post(kChatPath, std::string_view(body));
      EXPECT_EQ(reply.status, 400);
      EXPECT_EQ(reply.body.find(bytes), std::string::npos) << "raw bytes are not echoed";
      reply.json();
    }
  }
  for (const std::string& body :
       {"\xEF\xBB\xBF" + json::serialize(chat_body()), std::string("{\0}\0", 4),
        std::string("{\"messages\""), std::string(""), std::string("[1]"), std::string("null"),
        std::string("{} {}"), std::string("{'a': 1}"), std::string("{\"a\": NaN}")}) {
    EXPECT_EQ(server.connect()->post(kChatPath, std::string_view(body)).status, 400) << body;
  }
}

TEST(RequestFields, LoneSurrogatesAreRefusedInBothModes) {  // json-lone-surrogate
  TestServer server;
  for (const bool stream : {false, true}) {
    for (const char* text : {"\"\\ud800\"", "\"\\udc00x\"", "\"\\ud83d\\ud83d\\ude00\""}) {
      for (const char* field : {"stop", "model", "whatever"}) {
        EXPECT_EQ(post_field(server, field, text, stream).status, 400) << text;
      }
    }
    EXPECT_EQ(post_field(server, "whatever", "\"\\ud83d\\ude00\"", stream).status, 200);
  }
}

TEST(RequestFields, AllAreDocumented) {
  std::ifstream file(std::string(WINNOW_SOURCE_DIR) + "/docs/server.md");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const FieldRule& rule : field_rules()) {
    EXPECT_NE(text.find("`" + std::string(rule.name)), std::string::npos) << rule.name;
  }
  for (const Route& route : all_routes()) {
    EXPECT_NE(text.find(route.path), std::string::npos) << route.path;
  }
}

TEST(RequestFields, ModelNamesMatterOnlyWhenStrict) {
  TestServer lenient;
  json::object body = chat_body();
  body["model"] = "gpt-4";
  EXPECT_EQ(lenient.post(kChatPath, body).json().at("model"), "tiny");
  TestServer strict({.server = {.model_id = "tiny", .strict_model_name = true}});
  const ClientReply reply = strict.post(kChatPath, body);
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.json().at("error").at("code"), "model_not_found");
  body["model"] = "tiny";
  EXPECT_EQ(strict.post(kChatPath, body).status, 200);
}

}  // namespace
}  // namespace winnow
