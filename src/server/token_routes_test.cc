#include <gtest/gtest.h>

#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::chat_body;
using test::ClientReply;
using test::TestServer;

TEST(TokenRoutes, TextBecomesIdsAndTextAgain) {
  TestServer server;
  const std::string text = "Caf\u00e9 {\"a\": 1}\n";
  const std::vector<TokenId> ids = server.tokenizer().encode_with_special(text);
  const json::array id_list(ids.begin(), ids.end());
  const json::value vllm = server
                               .post("/tokenize", json::object{{"prompt", text},
                                                               {"add_special_tokens", false},
                                                               {"return_token_strs", true}})
                               .json();
  EXPECT_EQ(vllm.at("tokens"), id_list);
  EXPECT_EQ(vllm.at("count").as_int64(), static_cast<int64_t>(ids.size()));
  EXPECT_EQ(vllm.at("max_model_len").as_int64(), 4096);
  EXPECT_EQ(vllm.at("token_strs").as_array().size(), ids.size());
  const json::value llama = server.post("/tokenize", json::object{{"content", text}}).json();
  EXPECT_EQ(llama.at("tokens"), id_list);
  const json::value pieces =
      server.post("/tokenize", json::object{{"content", text}, {"with_pieces", true}}).json();
  EXPECT_EQ(pieces.at("tokens").at(0).at("id"), id_list[0]);
  const json::value back = server.post("/detokenize", json::object{{"tokens", id_list}}).json();
  for (const char* name : {"prompt", "text", "content"})
    EXPECT_EQ(back.at(name), json::value(text));
}

TEST(TokenRoutes, ConversationsAreRenderedAndCounted) {
  TestServer server;
  const json::value rendered = server.post("/v1/chat/completions/render", chat_body()).json();
  server.post("/v1/chat/completions", chat_body());
  const std::vector<TokenId> prompt = server.service().last_request().prompt;
  EXPECT_EQ(rendered.at("token_ids"), json::value(json::array(prompt.begin(), prompt.end())));
  const json::value counted = server.post("/v1/chat/completions/input_tokens", chat_body()).json();
  EXPECT_EQ(counted.at("input_tokens").as_int64(), static_cast<int64_t>(prompt.size()));
  EXPECT_EQ(server.post("/tokenize", chat_body()).json().at("tokens"), rendered.at("token_ids"));
  const json::value completions =
      server.post("/v1/completions/render", json::object{{"prompt", {"a", "b"}}}).json();
  EXPECT_EQ(completions.as_array().size(), 2U);
  EXPECT_EQ(server.service().num_submitted(), 1U);
}

TEST(TokenRoutes, BadRequestsAreRefused) {
  TestServer server;
  const int vocab = server.tokenizer().vocab_size();
  for (const json::object& body :
       {json::object{}, json::object{{"tokens", {-1}}}, json::object{{"tokens", {vocab}}},
        json::object{{"tokens", {1.5}}}, json::object{{"tokens", "a"}}}) {
    EXPECT_EQ(server.post("/detokenize", body).status, 400);
  }
  for (const json::object& body :
       {json::object{}, json::object{{"prompt", 5}}, json::object{{"content", 5}},
        json::object{{"messages", json::array()}, {"add_special_tokens", 1}}}) {
    EXPECT_EQ(server.post("/tokenize", body).status, 400);
  }
  const ClientReply embeddings = server.post("/v1/embeddings", json::object{{"input", "a"}});
  EXPECT_EQ(embeddings.status, 400);
  EXPECT_NE(embeddings.body.find("no embeddings"), std::string::npos);
}

TEST(StatusRoutes, TheModelIsDescribed) {
  TestServer server;
  const json::value models = server.get("/v1/models").json();
  EXPECT_EQ(models.at("object"), "list");
  const json::value card = models.at("data").at(0);
  EXPECT_EQ(card.at("id"), "tiny");
  EXPECT_EQ(card.at("object"), "model");
  EXPECT_EQ(card.at("max_model_len").as_int64(), 4096);
  EXPECT_GT(card.at("meta").at("n_params").as_int64(), 0);
  EXPECT_EQ(server.get("/v1/models/tiny").json(), card);
  const json::value info = server.get("/tokenizer_info").json();
  EXPECT_TRUE(info.at("eos_token").is_string());
  EXPECT_TRUE(info.as_object().contains("chat_template"));
  EXPECT_TRUE(server.get("/props").json().as_object().contains("default_generation_settings"));
  EXPECT_TRUE(server.get("/version").json().as_object().contains("version"));
  const ClientReply page = server.get("/");
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.body.ends_with("</html>\n"));
}

TEST(StatusRoutes, RequestsAtHandAreListed) {
  TestServer server;
  EXPECT_TRUE(server.get("/slots").json().as_array().empty());
  server.service().hold(true);
  auto client = server.connect();
  client->send_request("POST", "/v1/chat/completions", json::serialize(chat_body()));
  ASSERT_TRUE(server.service().wait_for_requests(1));
  const json::value slot = server.get("/slots").json().at(0);
  EXPECT_EQ(slot.at("phase"), "prompt");
  EXPECT_GT(slot.at("n_prompt").as_int64(), 0);
  server.service().hold(false);
  EXPECT_EQ(client->read_reply().status, 200);
}

}  // namespace
}  // namespace winnow
