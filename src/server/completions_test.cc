#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "server/completion_request.h"
#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::ClientReply;
using test::TestServer;

constexpr const char* kCompletionsPath = "/v1/completions";

TEST(Completions, ContinueTextAndTokenIds) {
  TestServer server;
  const std::vector<TokenId> ids = server.tokenizer().encode("Once upon");
  const json::array id_list(ids.begin(), ids.end());
  for (const json::value& prompt : {json::value("Once upon"), json::value(id_list)}) {
    const ClientReply reply = server.post(kCompletionsPath, json::object{{"prompt", prompt}});
    ASSERT_EQ(reply.status, 200) << reply.body;
    const json::value body = reply.json();
    EXPECT_EQ(body.at("object").as_string(), "text_completion");
    EXPECT_TRUE(body.at("id").as_string().starts_with("cmpl-"));
    EXPECT_EQ(body.at("choices").at(0).at("text").as_string(), "Hello, world");
    EXPECT_EQ(body.at("choices").at(0).at("finish_reason").as_string(), "stop");
  }
  EXPECT_EQ(server.service().last_request().prompt, ids);
}

TEST(Completions, SeveralPromptsAreAnsweredInOrder) {
  TestServer server;
  for (const json::value& prompt :
       {json::value({"one", "two", "three"}), json::value({{1, 2}, {3}, {4, 5, 6}})}) {
    const json::value body =
        server.post(kCompletionsPath, json::object{{"prompt", prompt}, {"n", 2}, {"echo", true}})
            .json();
    const json::array& choices = body.at("choices").as_array();
    ASSERT_EQ(choices.size(), 6U);
    for (size_t i = 0; i < choices.size(); ++i) {
      EXPECT_EQ(choices[i].at("index").as_int64(), static_cast<int64_t>(i));
    }
    EXPECT_EQ(choices[0].at("text"), choices[1].at("text"));
    EXPECT_NE(choices[1].at("text"), choices[2].at("text"));
  }
}

TEST(Completions, EchoAndLogprobsCoverPromptAndAnswer) {
  TestServer server;
  for (const bool as_ids : {false, true}) {
    const std::vector<TokenId> ids = server.tokenizer().encode_raw_prompt("Caf\u00e9 au lait");
    json::value prompt("Caf\u00e9 au lait");
    if (as_ids) prompt = json::array{json::array(ids.begin(), ids.end())};
    const json::value body = server
                                 .post(kCompletionsPath, json::object{{"prompt", prompt},
                                                                      {"max_tokens", 1},
                                                                      {"logprobs", 1},
                                                                      {"echo", true},
                                                                      {"temperature", 0},
                                                                      {"seed", 1234}})
                                 .json();
    const json::value& choice = body.at("choices").at(0);
    const json::value& scores = choice.at("logprobs");
    const size_t count = ids.size() + 1;
    for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
      EXPECT_EQ(scores.at(name).as_array().size(), count) << name;
    }
    EXPECT_TRUE(scores.at("token_logprobs").at(0).is_null());
    EXPECT_TRUE(scores.at("top_logprobs").at(0).is_null());
    for (size_t i = 1; i < count; ++i) {
      const json::object& top = scores.at("top_logprobs").at(i).as_object();
      ASSERT_EQ(top.size(), 1U);
      EXPECT_EQ(top.begin()->value(), scores.at("token_logprobs").at(i)) << "the likeliest token";
      EXPECT_EQ(top.begin()->key(), scores.at("tokens").at(i).as_string());
    }
    if (as_ids) continue;
    EXPECT_TRUE(choice.at("text").as_string().starts_with("Caf\u00e9 au lait"));
    EXPECT_EQ(scores.at("text_offset").at(count - 1).as_int64(), 12) << "characters, not bytes";
  }
}

TEST(Completions, AStreamSaysTheSame) {
  TestServer server;
  const json::object body{
      {"prompt", "Hi"}, {"echo", true}, {"logprobs", 2}, {"stream", true}, {"n", 2}};
  const ClientReply reply = server.post(kCompletionsPath, body);
  std::string texts[2];
  json::array tokens[2];
  const std::vector<std::string> events = reply.events();
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    const json::value chunk = json::parse(events[i]);
    EXPECT_EQ(chunk.at("object").as_string(), "text_completion");
    for (const json::value& choice : chunk.at("choices").as_array()) {
      const auto index = static_cast<size_t>(choice.at("index").as_int64());
      texts[index] += std::string(choice.at("text").as_string());
      if (choice.at("logprobs").is_null()) continue;
      for (const json::value& token : choice.at("logprobs").at("tokens").as_array()) {
        tokens[index].push_back(token);
      }
    }
  }
  json::object whole = body;
  whole["stream"] = false;
  const json::value expected = server.post(kCompletionsPath, whole).json();
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], expected.at("choices").at(i).at("text").as_string());
    EXPECT_EQ(tokens[i], expected.at("choices").at(i).at("logprobs").at("tokens").as_array());
  }
}

TEST(Completions, BadPromptsAreRefusedBeforeAnythingRuns) {  // samp-prompt-ids-out-of-range
  TestServer server;
  const int vocab = server.tokenizer().vocab_size();
  const std::string v = std::to_string(vocab);
  for (const std::string& prompt :
       {std::string("[-1]"), "[" + v + "]", std::string("[1.5]"),
        std::string("[9223372036854775807]"), std::string("[99999999999999999999]"),
        "[[1],[" + v + "]]", std::string("[true]"), std::string("[]"), std::string("[[]]"),
        std::string("[[1],[]]"), std::string("5"), std::string("{}"), std::string("null"),
        std::string("[\"a\", 5]"), std::string("[1, \"a\"]")}) {
    const ClientReply reply =
        server.connect()->post(kCompletionsPath, std::string_view("{\"prompt\": " + prompt + "}"));
    EXPECT_EQ(reply.status, 400) << prompt << reply.body;
    EXPECT_EQ(reply.json().at("error").at("param").as_string(), "prompt");
  }
  EXPECT_EQ(server.connect()->post(kCompletionsPath, std::string_view("{}")).status, 400);
  const json::array many(100000, json::value("a"));
  EXPECT_EQ(server.post(kCompletionsPath, json::object{{"prompt", many}}).status, 400);
  EXPECT_EQ(server.service().num_submitted(), 0U);
  EXPECT_EQ(server.post(kCompletionsPath, json::object{{"prompt", {1, 2}}}).status, 200);
}

TEST(Completions, AnEmptyPromptIsAnsweredAtOnce) {  // limit-empty-prompt
  TestServer server;
  for (const char* prompt : {"", "\0", " "}) {
    const int status = server.post(kCompletionsPath, json::object{{"prompt", prompt}}).status;
    EXPECT_TRUE(status == 200 || status == 400);
  }
  EXPECT_EQ(server.post(kCompletionsPath, json::object{{"prompt", "a"}}).status, 200);
}

TEST(Completions, BestOfChoosesAmongMore) {
  TestServer server;
  const json::value body =
      server.post(kCompletionsPath, json::object{{"prompt", "a"}, {"n", 2}, {"best_of", 4}}).json();
  EXPECT_EQ(body.at("choices").as_array().size(), 2U);
  EXPECT_EQ(server.service().num_submitted(), 4U);
  for (const json::object& bad :
       {json::object{{"prompt", "a"}, {"n", 3}, {"best_of", 2}},
        json::object{{"prompt", "a"}, {"best_of", 17}},
        json::object{{"prompt", "a"}, {"best_of", 0}},
        json::object{{"prompt", "a"}, {"best_of", 2}, {"stream", true}}}) {
    EXPECT_EQ(server.post(kCompletionsPath, bad).status, 400);
  }
}

TEST(Completions, ScoresOfThePromptComeInVllmsForm) {
  TestServer server;
  json::object body{{"prompt", json::array{"Hi there", "Hello"}}, {"prompt_logprobs", 2}};
  body["n"] = 2;
  const json::array choices = server.post(kCompletionsPath, body).json().at("choices").as_array();
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices[0].at("prompt_logprobs"), choices[1].at("prompt_logprobs"));
  const std::vector<TokenId> ids = raw_prompt_ids("Hi there", true, server.tokenizer());
  const json::array& list = choices[0].at("prompt_logprobs").as_array();
  ASSERT_EQ(list.size(), ids.size());
  EXPECT_TRUE(list[0].is_null());
  for (size_t i = 1; i < ids.size(); ++i) {
    const json::object& entry = list[i].as_object();
    // The likeliest is the prompt's own token.
    ASSERT_EQ(entry.size(), 2U);
    EXPECT_EQ(entry.begin()->key(), std::to_string(ids[i]));
    const json::value& own = entry.begin()->value();
    EXPECT_EQ(own.at("logprob").as_double(), -0.25);
    EXPECT_EQ(own.at("rank").as_int64(), 1);
    EXPECT_EQ(own.at("decoded_token").as_string(), server.tokenizer().piece(ids[i]));
    EXPECT_EQ(entry.at(std::to_string(ids[i] + 1)).at("rank").as_int64(), 2);
  }
  json::object chat = test::chat_body();
  chat["prompt_logprobs"] = 0;
  const json::array of_chat =
      server.post("/v1/chat/completions", chat).json().at("prompt_logprobs").as_array();
  EXPECT_EQ(of_chat.size(), server.service().last_request().prompt.size());
  EXPECT_EQ(of_chat[1].as_object().size(), 1U);
}

TEST(Completions, ScoresOfThePromptAreThoseOfAnEcho) {
  TestServer server;
  const json::value reply = server
                                .post(kCompletionsPath, json::object{{"prompt", "Hi there"},
                                                                     {"max_tokens", 1},
                                                                     {"echo", true},
                                                                     {"logprobs", 1},
                                                                     {"prompt_logprobs", 3}})
                                .json();
  const json::value& choice = reply.at("choices").at(0);
  const json::array& list = choice.at("prompt_logprobs").as_array();
  const json::value& echoed = choice.at("logprobs");
  ASSERT_EQ(echoed.at("tokens").as_array().size(), list.size() + 1);
  for (size_t i = 1; i < list.size(); ++i) {
    const json::object& entry = list[i].as_object();
    EXPECT_EQ(entry.size(), 3U);
    EXPECT_EQ(entry.begin()->value().at("logprob"), echoed.at("token_logprobs").at(i));
    EXPECT_EQ(echoed.at("top_logprobs").at(i).as_object().size(), 1U);
  }
}

TEST(Completions, ScoresOfThePromptAreBoundedAndNotStreamed) {
  TestServer server;
  for (json::object body :
       {json::object{{"prompt_logprobs", 21}}, json::object{{"prompt_logprobs", -1}},
        json::object{{"prompt_logprobs", 1}, {"stream", true}}}) {
    body["prompt"] = "a";
    const ClientReply reply = server.post(kCompletionsPath, body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json().at("error").at("param").as_string(), "prompt_logprobs");
  }
}

TEST(Completions, ASuffixIsRefused) {
  TestServer server;
  EXPECT_EQ(server.post(kCompletionsPath, json::object{{"prompt", "a"}, {"suffix", "b"}}).status,
            400);
  EXPECT_EQ(
      server.post(kCompletionsPath, json::object{{"prompt", "a"}, {"suffix", nullptr}}).status,
      200);
}

TEST(Completions, ContextLimitsAreExact) {  // limit-exact-context
  TestServer server({.context_tokens = 64});
  const auto prompt_of = [](int size) { return json::array(static_cast<size_t>(size), 5); };
  for (const bool stream : {false, true}) {
    for (const json::value& max_tokens : {json::value(1), json::value(16), json::value()}) {
      for (const int size : {64, 65, 128}) {
        const ClientReply reply =
            server.post(kCompletionsPath, json::object{{"prompt", prompt_of(size)},
                                                       {"max_tokens", max_tokens},
                                                       {"stream", stream}});
        EXPECT_EQ(reply.status, 400);
        const json::value error = reply.json().at("error");
        EXPECT_EQ(error.at("code").as_string(), "context_length_exceeded");
        EXPECT_NE(error.at("message").as_string().find("This model's maximum context length is 64"),
                  std::string::npos);
        EXPECT_EQ(error.at("n_prompt_tokens").as_int64(), size);
        EXPECT_EQ(error.at("n_ctx").as_int64(), 64);
      }
    }
  }
  const json::value one =
      server.post(kCompletionsPath, json::object{{"prompt", prompt_of(63)}}).json();
  EXPECT_EQ(one.at("choices").at(0).at("finish_reason").as_string(), "length");
  EXPECT_EQ(one.at("usage").at("completion_tokens").as_int64(), 1);
  const json::value two =
      server.post(kCompletionsPath, json::object{{"prompt", prompt_of(62)}, {"max_tokens", 16}})
          .json();
  EXPECT_EQ(two.at("usage").at("completion_tokens").as_int64(), 2);
}

TEST(Completions, ATextThatCannotFitIsRefusedByItsLength) {
  TestServer server({.context_tokens = 64});
  const std::string text(100000, 'a');
  const json::object completion{{"prompt", json::array{"short", text}}, {"max_tokens", 1}};
  json::object chat = test::chat_body(text);
  chat["max_tokens"] = 1;
  for (const auto& [path, body] :
       {std::pair{kCompletionsPath, completion}, {"/v1/chat/completions", chat}}) {
    const ClientReply reply = server.post(path, body);
    EXPECT_EQ(reply.status, 400);
    const json::value error = reply.json().at("error");
    EXPECT_EQ(error.at("code").as_string(), "context_length_exceeded");
    EXPECT_NE(error.at("message").as_string().find("the prompt has at least"), std::string::npos);
    EXPECT_GE(error.at("n_prompt_tokens").as_int64(), server.tokenizer().least_tokens(text.size()));
    EXPECT_LE(error.at("n_prompt_tokens").as_int64(), std::ssize(server.tokenizer().encode(text)));
    json::object truncated = body;
    truncated["truncate_prompt_tokens"] = 5;
    EXPECT_EQ(server.post(path, truncated).status, 200);
  }
}

TEST(Completions, AClientThatLeavesWhileItsPromptIsTakenCancelsIt) {
  std::promise<void> begun, go_on;
  TestServer server({.script = [&](const ServiceRequest&) {
    begun.set_value();
    go_on.get_future().wait();
    return std::vector<TokenId>{5};
  }});
  server.service().hold(true);
  auto client = server.connect();
  client->send_request("POST", kCompletionsPath, R"({"prompt": "a", "stream": true})");
  begun.get_future().wait();
  client->reset();
  go_on.set_value();
  EXPECT_TRUE(server.service().wait_for_cancelled(1));
}

TEST(Completions, OthersAreAnsweredWhilePromptsAreTaken) {
  std::promise<void> begun, go_on;
  const std::shared_future<void> wait = go_on.get_future().share();
  std::atomic<int> num_taken = 0;
  TestServer server({.script = [&](const ServiceRequest&) {
    if (++num_taken == 1) begun.set_value();
    wait.wait();
    return std::vector<TokenId>{5};
  }});
  const std::string body = json::serialize(json::object{{"prompt", "a"}, {"max_tokens", 1}});
  std::vector<std::unique_ptr<test::HttpClient>> clients;
  // More than there are threads to serve connections.
  for (int i = 0; i < 8; ++i) {
    clients.push_back(server.connect());
    clients.back()->send_request("POST", kCompletionsPath, body);
  }
  begun.get_future().wait();
  EXPECT_EQ(server.get("/version").status, 200);
  EXPECT_EQ(server.get("/v1/models").status, 200);
  go_on.set_value();
  for (const auto& client : clients) EXPECT_EQ(client->read_reply().status, 200);
  EXPECT_EQ(num_taken, 8);
}

}  // namespace
}  // namespace winnow
