#include "server/prefix_routes.h"

#include <gtest/gtest.h>

#include "support/temp_folder.h"
#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::chat_body;
using test::ClientReply;
using test::HttpClient;
using test::TestServer;

const std::string kDocument(600, 'a');

// A folder with one saved prefix of the owner's.
struct Folder {
  explicit Folder(const std::string& owner = "everybody") {
    auto opened = PrefixFolder::open(
        {.path = temp.path("kv"), .limit_bytes = 1 << 20, .identity = "this", .page_bytes = 64});
    EXPECT_TRUE(opened.ok());
    folder = std::move(opened).value();
    PrefixHeader header{.tenant = tenant_hash(owner)};
    header.tokens.resize(kPageTokens);
    header.pages.resize(1);
    const auto save = folder->save({owner, "old"}, std::move(header));
    EXPECT_TRUE((*save)->append(std::vector<std::byte>(64), false).ok());
    EXPECT_TRUE((*save)->finish().ok());
  }

  test::TempFolder temp;
  std::unique_ptr<PrefixFolder> folder;
};

ClientReply remove(TestServer& server, const std::string& path, const std::string& headers = {}) {
  HttpClient client(server.port());
  client.send_request("DELETE", path, {}, headers);
  return client.read_reply();
}

std::string message_of(const ClientReply& reply) {
  return std::string(reply.json().at("error").at("message").as_string());
}

TEST(PrefixRoutes, AConversationOrATextIsRunAndSavedUnderItsName) {
  Folder saved;
  TestServer server({.prefixes = saved.folder.get()});
  json::object text{{"prompt", kDocument}, {"user", "u"}};
  for (const json::object& body : {chat_body(kDocument), text}) {
    const ClientReply reply = server.post("/winnow/kv/my-doc.1", body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    const ServiceRequest request = server.service().last_request();
    ASSERT_TRUE(request.save_as);
    EXPECT_EQ(request.save_as->name, "my-doc.1");
    EXPECT_EQ(request.save_as->owner, "everybody");
    EXPECT_EQ(reply.json().at("name").as_string(), "my-doc.1");
    EXPECT_EQ(reply.json().at("tokens").as_int64(), std::ssize(request.prompt) / 128 * 128);
    EXPECT_EQ(reply.json().at("usage").at("prompt_tokens").as_int64(), std::ssize(request.prompt));
    // A request that names nothing has to find it.
    const std::string path = body.contains("messages") ? "/v1/chat/completions" : "/v1/completions";
    EXPECT_EQ(server.post(path, body).status, 200);
    EXPECT_EQ(server.service().last_request().cache_scope, request.cache_scope);
    EXPECT_EQ(server.service().last_request().prompt, request.prompt);
  }
}

TEST(PrefixRoutes, WhatCannotBeSavedIsRefused) {
  Folder saved;
  TestServer server({.prefixes = saved.folder.get()});
  const auto refused = [&](const std::string& path, const json::object& body) {
    const ClientReply reply = server.post(path, body);
    EXPECT_EQ(reply.status, 400) << reply.body;
    return message_of(reply);
  };
  EXPECT_NE(refused("/winnow/kv/a%2fb", chat_body()).find("name: expected"), std::string::npos);
  EXPECT_NE(refused("/winnow/kv/a/b", chat_body()).find("name: expected"), std::string::npos);
  EXPECT_EQ(refused("/winnow/kv/a", {{"prompt", json::array{"a", "b"}}}),
            "prompt: expected one, found 2");
  EXPECT_NE(refused("/winnow/kv/a", json::object()).find("prompt: expected"), std::string::npos);
  EXPECT_NE(refused("/winnow/kv/a", {{"messages", "x"}}).find("messages: expected"),
            std::string::npos);
  EXPECT_EQ(server.post("/winnow/kv/", chat_body()).status, 404);
  EXPECT_EQ(server.get("/winnow/kv/old").status, 405);
  EXPECT_EQ(server.service().num_submitted(), 0U);
}

TEST(PrefixRoutes, AFailedSaveIsAnError) {
  Folder saved;
  TestServer server({.prefixes = saved.folder.get()});
  server.service().fail_next(fail(ErrorCode::kStorageFull, "disk: full"));
  const ClientReply reply = server.post("/winnow/kv/a", chat_body(kDocument));
  EXPECT_EQ(reply.status, 507);
  EXPECT_EQ(reply.json().at("error").at("code").as_string(), "storage_full");
}

TEST(PrefixRoutes, NamesAreListedAndRemoved) {
  Folder saved;
  TestServer server({.prefixes = saved.folder.get()});
  const json::value list = server.get("/winnow/kv").json();
  ASSERT_EQ(list.at("data").as_array().size(), 1U);
  const json::object& first = list.at("data").as_array()[0].as_object();
  EXPECT_EQ(first.at("name").as_string(), "old");
  EXPECT_EQ(first.at("tokens").as_int64(), 128);
  EXPECT_EQ(first.at("attention").as_string(), "dense");
  EXPECT_EQ(remove(server, "/winnow/kv/new").status, 404);
  EXPECT_EQ(remove(server, "/winnow/kv/new").json().at("error").at("code").as_string(),
            "prefix_not_found");
  EXPECT_EQ(remove(server, "/winnow/kv/..%2fold").status, 400);
  EXPECT_EQ(remove(server, "/winnow/kv/old").status, 200);
  EXPECT_TRUE(server.get("/winnow/kv").json().at("data").as_array().empty());
  EXPECT_EQ(remove(server, "/v1/models").status, 405);
}

TEST(PrefixRoutes, AKeySeesItsOwnAlone) {
  const std::string mine = "Authorization: Bearer first\r\n";
  HttpHead head;
  head.headers.push_back({"Authorization", "Bearer first"});
  Folder saved(ApiKeys::create({"first", "second"})->tenant(head).value());
  TestServer server({.keys = {"first", "second"}, .prefixes = saved.folder.get()});
  const std::string other = "Authorization: Bearer second\r\n";
  EXPECT_EQ(server.get("/winnow/kv").status, 401);
  EXPECT_EQ(remove(server, "/winnow/kv/old").status, 401);
  EXPECT_TRUE(server.get("/winnow/kv", other).json().at("data").as_array().empty());
  EXPECT_EQ(remove(server, "/winnow/kv/old", other).status, 404);
  EXPECT_EQ(server.get("/winnow/kv", mine).json().at("data").as_array().size(), 1U);
  EXPECT_EQ(remove(server, "/winnow/kv/old", mine).status, 200);
}

TEST(PrefixRoutes, PagesOfOtherOriginsMayNotRemove) {
  Folder saved;
  TestServer server({.prefixes = saved.folder.get()});
  EXPECT_EQ(remove(server, "/winnow/kv/old", "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(saved.folder->list("everybody").size(), 1U);
}

TEST(PrefixRoutes, AServerWithoutAFolderSaysSo) {
  TestServer server;
  for (const ClientReply& reply : {server.get("/winnow/kv"), remove(server, "/winnow/kv/a"),
                                   server.post("/winnow/kv/a", chat_body(kDocument))}) {
    EXPECT_EQ(reply.status, 400);
    EXPECT_NE(message_of(reply).find("--kv-store"), std::string::npos);
  }
}

}  // namespace
}  // namespace winnow
