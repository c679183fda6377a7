#include <gtest/gtest.h>

#include <chrono>

#include "server/drain.h"
#include "server/routes.h"
#include "support/test_server.h"

namespace winnow {
namespace {

namespace json = boost::json;
using test::chat_body;
using test::ClientReply;
using test::HttpClient;
using test::kChatPath;
using test::TestServer;

std::string chat_text(bool stream = false) {
  json::object body = chat_body();
  body["stream"] = stream;
  return json::serialize(body);
}

void expect_error(const ClientReply& reply, int status) {
  EXPECT_EQ(reply.status, status) << reply.head << reply.body;
  if (reply.status != status) return;
  const json::value error = reply.json().at("error");
  EXPECT_FALSE(error.at("message").as_string().empty());
  EXPECT_TRUE(error.at("type").is_string());
  EXPECT_TRUE(error.as_object().contains("param"));
  EXPECT_TRUE(error.as_object().contains("code"));
}

TEST(Http, AConnectionServesManyRequests) {
  TestServer server;
  HttpClient client(server.port());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.get("/health").status, 200);
    EXPECT_EQ(client.post(kChatPath, chat_text()).status, 200);
    EXPECT_TRUE(client.post(kChatPath, chat_text(true)).body.ends_with("data: [DONE]\n\n"));
  }
  EXPECT_EQ(server.http().counts().accepted, 1);
}

TEST(Http, RequestsSentAheadAreAnsweredInOrder) {
  TestServer server;
  HttpClient client(server.port());
  client.send_request("POST", kChatPath, chat_text());
  client.send_request("GET", "/health");
  client.send_request("POST", kChatPath, chat_text(true));
  client.send_request("GET", "/version");
  EXPECT_EQ(client.read_reply().json().at("object"), "chat.completion");
  EXPECT_EQ(client.read_reply().json().at("status"), "ok");
  EXPECT_TRUE(client.read_reply().body.ends_with("data: [DONE]\n\n"));
  EXPECT_TRUE(client.read_reply().json().as_object().contains("version"));
}

TEST(Http, AnOldClientGetsItsStreamUntilTheConnectionEnds) {
  TestServer server;
  HttpClient client(server.port());
  const std::string body = chat_text(true);
  client.send("POST /v1/chat/completions HTTP/1.0\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const std::string all = client.read_all();
  EXPECT_EQ(all.find("chunked"), std::string::npos);
  EXPECT_TRUE(all.ends_with("data: [DONE]\n\n"));
}

TEST(Http, AForeignHostIsRefused) {
  const auto hosts = HostPolicy::local("127.0.0.2", "proxy.example,Other");
  ASSERT_TRUE(hosts.ok());
  TestServer server({.hosts = *hosts});
  const std::string body = json::serialize(chat_body());
  const auto ask = [&](std::string_view method, std::string_view path, std::string_view host) {
    HttpClient client(server.port());
    client.send(std::string(method) + " " + std::string(path) +
                " HTTP/1.1\r\nHost: " + std::string(host) +
                "\r\nContent-Length: " + std::to_string(method == "POST" ? body.size() : 0) +
                "\r\n\r\n" + (method == "POST" ? body : ""));
    return client.read_reply();
  };
  for (const char* host : {"localhost", "LocalHost:8080", "localhost.:1", "127.0.0.1", "[::1]:8080",
                           "127.0.0.2", "proxy.example", "other:80", ""}) {
    EXPECT_EQ(ask("POST", kChatPath, host).status, 200) << host;
    EXPECT_EQ(ask("GET", "/", host).status, 200) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80",
                           "[::2]", "[::1", "localhost@evil.example", "notlocalhost"}) {
    const ClientReply refused = ask("POST", kChatPath, host);
    EXPECT_EQ(refused.status, 403) << host;
    EXPECT_NE(refused.body.find("--allowed-hosts"), std::string::npos);
    for (const char* path : {"/", "/v1/models", "/metrics", "/props", "/slots"}) {
      EXPECT_EQ(ask("GET", path, host).status, 403) << host << path;
    }
    EXPECT_EQ(ask("OPTIONS", kChatPath, host).status, 403) << host;
    EXPECT_EQ(ask("GET", "/health", host).status, 200) << host;
  }
}

TEST(Http, NamesOfHostsAreChecked) {
  for (const char* hosts : {"a,b", "*", "[::1]", ""}) {
    EXPECT_TRUE(HostPolicy::local("127.0.0.1", hosts).ok()) << hosts;
  }
  for (const char* hosts : {"a:80", "http://a", "a,,b", "a b", ",", "[::1"}) {
    EXPECT_FALSE(HostPolicy::local("127.0.0.1", hosts).ok()) << hosts;
  }
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("localhost") && is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("192.0.2.1") || is_loopback("::"));
}

TEST(Http, UnknownPathsAndMethodsAreRefused) {  // http-options-head-cors
  TestServer server;
  expect_error(server.get("/nothing"), 404);
  expect_error(server.get("/v1/models/other"), 404);
  expect_error(server.get("/v1/chat/completions/"), 404);
  for (const Route& route : all_routes()) {
    std::string path(route.path);
    if (path.size() > 1 && path.ends_with('/')) path += "tiny";
    HttpClient client(server.port());
    client.send_request(route.method == "GET" ? "POST" : "GET", path);
    const ClientReply reply = client.read_reply();
    expect_error(reply, 405);
    EXPECT_EQ(reply.header("Allow"), allowed_methods(route));
  }
  HttpClient client(server.port());
  client.send_request("BREW", "/health");
  expect_error(client.read_reply(), 405);
}

TEST(Http, HeadIsGetWithoutBody) {
  TestServer server;
  for (const char* path : {"/health", "/v1/models"}) {
    const ClientReply whole = server.get(path);
    HttpClient client(server.port());
    client.send_request("HEAD", path);
    const ClientReply head = client.read_reply(true);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("Content-Length"), std::to_string(whole.body.size()));
    EXPECT_EQ(client.get("/health").status, 200) << "no body came";
  }
}

TEST(Http, OnlyAllowedOriginsGetCorsHeaders) {
  TestServer server({.keys = {"secret"}});
  const std::string local = "Origin: http://localhost:3000\r\n";
  for (const Route& route : all_routes()) {
    HttpClient client(server.port());
    std::string path(route.path);
    if (path.size() > 1 && path.ends_with('/')) path += "tiny";
    client.send_request("OPTIONS", path, {},
                        local + "Access-Control-Request-Headers: x-stainless-os, content-type\r\n");
    const ClientReply preflight = client.read_reply();
    EXPECT_EQ(preflight.status, 204) << path;
    EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "http://localhost:3000");
    EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "x-stainless-os, content-type");
    EXPECT_EQ(preflight.header("Access-Control-Allow-Credentials"), "");
  }
  for (const char* origin : {"http://evil.example", "null", "http://localhost.evil.example",
                             "http://evil.example/localhost"}) {
    HttpClient client(server.port());
    client.send_request("OPTIONS", kChatPath, {}, "Origin: " + std::string(origin) + "\r\n");
    const ClientReply refused = client.read_reply();
    EXPECT_EQ(refused.status, 403) << origin;
    EXPECT_EQ(refused.header("Access-Control-Allow-Origin"), "");
  }
  const std::string key = "Authorization: Bearer secret\r\n";
  for (const bool stream : {false, true}) {
    HttpClient client(server.port());
    const ClientReply real = client.post(kChatPath, chat_text(stream), local + key);
    EXPECT_EQ(real.status, 200);
    EXPECT_EQ(real.header("Access-Control-Allow-Origin"), "http://localhost:3000");
  }
  const ClientReply without_key = server.post(kChatPath, chat_body(), local);
  expect_error(without_key, 401);
  EXPECT_EQ(without_key.header("Access-Control-Allow-Origin"), "http://localhost:3000");
}

TEST(Http, KeysGuardAllButTheOpenRoutes) {
  TestServer server({.keys = {"first", "second"}});
  for (const Route& route : all_routes()) {
    std::string path(route.path);
    if (path.size() > 1 && path.ends_with('/')) path += "tiny";
    HttpClient client(server.port());
    client.send_request(route.method, path, route.method == "POST" ? "{}" : "");
    const int status = client.read_reply().status;
    if (route.access == RouteAccess::kKey) {
      EXPECT_EQ(status, 401) << path;
    } else {
      EXPECT_EQ(status, 200) << path;
    }
    const bool needs_key = (path.starts_with("/v1/") && path != "/v1/health") ||
                           path == "/tokenize" || path == "/detokenize" || path == "/slots" ||
                           path == "/props" || path == "/tokenizer_info" ||
                           path.starts_with("/winnow/");
    EXPECT_EQ(needs_key, route.access == RouteAccess::kKey) << path;
  }
  for (const char* wrong : {"Authorization: Bearer third\r\n", "Authorization: Bearer \r\n",
                            "Authorization: Basic first\r\n", "x-api-key: firs\r\n"}) {
    const ClientReply reply = server.get("/v1/models", wrong);
    expect_error(reply, 401);
    EXPECT_EQ(reply.json().at("error").at("code").as_string(), "invalid_api_key");
  }
  for (const char* right : {"Authorization: Bearer first\r\n", "authorization: bearer second\r\n",
                            "x-api-key: second\r\n"}) {
    EXPECT_EQ(server.get("/v1/models", right).status, 200) << right;
  }
}

TEST(Http, AnEmptyKeyPassesWhereNoneIsNeeded) {
  TestServer server;
  EXPECT_EQ(server.get("/v1/models", "Authorization: Bearer \r\n").status, 200);
}

TEST(Http, TenantsDoNotSharePrefixes) {  // iso-prefix-cache-tenants
  TestServer server({.keys = {"first", "second"}});
  std::vector<std::string> scopes;
  for (const char* key : {"first", "second", "first"}) {
    server.post(kChatPath, chat_body(), "x-api-key: " + std::string(key) + "\r\n");
    scopes.push_back(server.service().last_request().cache_scope);
  }
  EXPECT_NE(scopes[0], scopes[1]);
  EXPECT_EQ(scopes[0], scopes[2]);
  EXPECT_EQ(scopes[0].find("first"), std::string::npos) << "a scope tells no key";
}

TEST(Http, AmbiguousFramingIsRefusedAndNothingHiddenRuns) {  // http-ambiguous-framing
  TestServer server;
  const std::string hidden = "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                             std::to_string(chat_text().size()) + "\r\n\r\n" + chat_text();
  for (const std::string& headers :
       {std::string("Host: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Host: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n"),
        std::string("Host: a\r\nTransfer-Encoding: chunked, gzip\r\n"),
        std::string("Host: a\r\nTransfer-Encoding:  chunked\r\n"),
        std::string("Host: a\r\nContent-Length: +5\r\n"),
        std::string("Host: a\r\nContent-Length: 0x5\r\n"),
        std::string("Host: a\r\nContent-Length: 5 5\r\n"),
        std::string("Host: a\nContent-Length: 5\n"), std::string("Host: a\r\nA : b\r\n"),
        std::string("Host: a\r\nHost: b\r\n"), std::string("A: b\r\n")}) {
    HttpClient client(server.port());
    client.send("POST /v1/completions HTTP/1.1\r\n" + headers + "\r\n" + "0\r\n\r\n" + hidden);
    const ClientReply reply = client.read_reply();
    expect_error(reply, 400);
    EXPECT_EQ(reply.header("Connection"), "close");
    EXPECT_EQ(client.read_all(), "");
  }
  for (const char* garbage : {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/3.0\r\nHost: a\r\n\r\n",
                              "\x16\x03\x01\x02\r\n\r\n"}) {
    HttpClient client(server.port());
    client.send(garbage);
    expect_error(client.read_reply(), 400);
  }
  EXPECT_EQ(server.service().num_submitted(), 0U);
}

TEST(Http, BadChunksAreRefused) {
  TestServer server;
  HttpClient client(server.port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n");
  expect_error(client.read_reply(), 400);
}

TEST(Http, ChunkedRequestsAreRead) {
  TestServer server;
  HttpClient client(server.port());
  const std::string body = chat_text();
  client.send(
      "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const char c : body) client.send(std::string("1\r\n") + c + "\r\n");
  client.send("0\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST(Http, ExpectIsAnsweredBeforeTheBody) {  // http-expect-continue
  TestServer server({.limits = {.max_body_bytes = 100000}, .keys = {"secret"}});
  const std::string key = "x-api-key: secret\r\n";
  const auto ask = [&](HttpClient& client, std::string_view path, std::string_view headers,
                       size_t length) {
    client.send("POST " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n" + std::string(headers) +
                "Content-Length: " + std::to_string(length) + "\r\n\r\n");
    return client.read_reply();
  };
  const std::string body = chat_text();
  const std::string wait = "Expect: 100-continue\r\n";
  HttpClient good(server.port());
  EXPECT_EQ(ask(good, kChatPath, key + wait, body.size()).status, 100);
  good.send(body);
  EXPECT_EQ(good.read_reply().status, 200);
  HttpClient no_key(server.port());
  expect_error(ask(no_key, kChatPath, wait, body.size()), 401);
  HttpClient no_path(server.port());
  expect_error(ask(no_path, "/nothing", key + wait, body.size()), 404);
  HttpClient too_long(server.port());
  expect_error(ask(too_long, kChatPath, key + wait, 100001), 413);
  HttpClient unknown(server.port());
  expect_error(ask(unknown, kChatPath, key + "Expect: something-else\r\n", body.size()), 417);
}

TEST(Http, BodiesOverTheLimitAreRefusedUnread) {  // json-huge-body
  TestServer server({.limits = {.max_body_bytes = 1 << 20}});
  for (const char* length : {"1048577", "3000000000", "1000000000000000000"}) {
    HttpClient client(server.port());
    client.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                std::string(length) + "\r\n\r\n");
    const ClientReply reply = client.read_reply();
    expect_error(reply, 413);
    EXPECT_EQ(reply.header("Connection"), "close");
  }
  HttpClient chunked(server.port());
  chunked.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "10000\r\n" + std::string(65536, ' ') + "\r\n";
  for (int i = 0; i < 17; ++i) chunked.send(chunk);
  expect_error(chunked.read_reply(), 413);
  HttpClient legal(server.port());
  std::string body = chat_text();
  body.append((1 << 20) - body.size(), ' ');
  EXPECT_EQ(legal.post(kChatPath, body).status, 200);
}

TEST(Http, LongHeadsAreRefused) {
  TestServer server({.limits = {.max_head_bytes = 8192}});
  HttpClient client(server.port());
  client.send("GET /health HTTP/1.1\r\nHost: a\r\nX: " + std::string(9000, 'x'));
  expect_error(client.read_reply(), 431);
}

TEST(Http, SlowClientsAreSentAway) {  // http-slowloris
  TestServer server({.limits = {.head_timeout_s = 0.2, .body_timeout_s = 0.2}});
  HttpClient slow_head(server.port());
  slow_head.send("GET /health HT");
  HttpClient slow_body(server.port());
  slow_body.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{");
  for (HttpClient* client : {&slow_head, &slow_body}) {
    const ClientReply reply = client->read_reply();
    expect_error(reply, 408);
    EXPECT_EQ(client->read_all(), "");
  }
  EXPECT_EQ(server.http().counts().timeouts, 2);
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(Http, IdleConnectionsAreClosedQuietly) {
  TestServer server({.limits = {.idle_timeout_s = 0.2}});
  HttpClient silent(server.port());
  EXPECT_EQ(silent.read_all(), "");
  HttpClient kept(server.port());
  EXPECT_EQ(kept.get("/health").status, 200);
  EXPECT_EQ(kept.read_all(), "");
}

TEST(Http, ConnectionsBeyondTheLimitAreClosed) {
  TestServer server({.limits = {.max_connections = 2}});
  HttpClient first(server.port());
  EXPECT_EQ(first.get("/health").status, 200);
  HttpClient second(server.port());
  EXPECT_EQ(second.get("/health").status, 200);
  HttpClient third(server.port());
  EXPECT_EQ(third.read_all(), "");
  second.close();
  EXPECT_EQ(first.get("/health").status, 200);
}

TEST(Http, AClientThatLeavesCancelsItsRequest) {  // kv-leak-on-abort, shut-sigpipe
  TestServer server({.context_tokens = 100000});
  server.service().hold(true);
  int64_t num_left = 0;
  const std::string prompt(2000, 'a');
  for (const bool stream : {false, true}) {
    for (const bool hard : {false, true}) {
      for (const int64_t steps : {0, 1, 5, 20}) {
        HttpClient client(server.port());
        json::object body = chat_body(prompt);
        body["stream"] = stream;
        body["n"] = 2;
        body["max_tokens"] = 4000;
        body["ignore_eos"] = true;
        client.send_request("POST", kChatPath, json::serialize(body));
        ASSERT_TRUE(server.service().wait_for_requests(2));
        server.service().step(steps);
        hard ? client.reset() : client.close();
        num_left += 2;
        ASSERT_TRUE(server.service().wait_for_cancelled(num_left));
        ASSERT_TRUE(server.service().wait_for_requests(0));
      }
    }
  }
  server.service().hold(false);
  EXPECT_EQ(server.post(kChatPath, chat_body()).status, 200);
}

TEST(Http, AClientThatLeavesAfterItsAnswerHasNotLeftEarly) {
  TestServer server;
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_EQ(server.post(kChatPath, chat_body()).status, 200);
  }
  const ClientReply metrics = server.get("/metrics");
  const size_t at = metrics.body.find("\nwinnow_http_clients_left_total");
  ASSERT_NE(at, std::string::npos);
  const size_t end = metrics.body.find('\n', at + 1);
  EXPECT_TRUE(metrics.body.substr(at, end - at).ends_with("} 0"));
}

TEST(Http, AQueuedRequestIsCancelledToo) {
  TestServer server;
  server.service().set_max_running(1);
  server.service().hold(true);
  HttpClient first(server.port());
  first.send_request("POST", kChatPath, chat_text());
  ASSERT_TRUE(server.service().wait_for_requests(1));
  HttpClient second(server.port());
  second.send_request("POST", kChatPath, chat_text());
  ASSERT_TRUE(server.service().wait_for_requests(2));
  second.close();
  ASSERT_TRUE(server.service().wait_for_cancelled(1));
  server.service().hold(false);
  EXPECT_EQ(first.read_reply().status, 200);
}

TEST(Http, AReaderThatStallsIsDropped) {  // stream-slow-reader
  TestServer server(
      {.limits = {.write_timeout_s = 0.3, .max_unsent_bytes = 200000}, .context_tokens = 1000000});
  // More than the sockets take, and never the whole answer, however slowly it is sent.
  server.service().hold(true);
  server.service().step(50000);
  json::object body = chat_body();
  body["stream"] = true;
  body["ignore_eos"] = true;
  body["max_tokens"] = 200000;
  HttpClient stalled(server.port(), 4096);
  stalled.send_request("POST", kChatPath, json::serialize(body));
  ASSERT_TRUE(server.service().wait_for_cancelled(1));
  ASSERT_TRUE(server.service().wait_for_requests(0));
  server.service().hold(false);
  EXPECT_GE(server.http().counts().timeouts, 1);
  EXPECT_EQ(server.post(kChatPath, chat_body()).status, 200);
}

TEST(Http, AFullQueueIsToldAtOnce) {  // http-health-when-saturated
  TestServer server;
  server.service().set_max_running(1);
  server.service().set_max_waiting(1);
  server.service().hold(true);
  HttpClient first(server.port()), second(server.port());
  first.send_request("POST", kChatPath, chat_text());
  second.send_request("POST", kChatPath, chat_text(true));
  ASSERT_TRUE(server.service().wait_for_requests(2));
  for (const bool stream : {false, true}) {
    HttpClient third(server.port());
    const ClientReply reply = third.post(kChatPath, chat_text(stream));
    expect_error(reply, 429);
    EXPECT_EQ(reply.header("Retry-After"), "1");
    EXPECT_EQ(reply.json().at("error").at("type").as_string(), "rate_limit_error");
  }
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.get("/ready").status, 503);
  EXPECT_EQ(server.get("/metrics").status, 200);
  server.service().hold(false);
  EXPECT_EQ(first.read_reply().status, 200);
  EXPECT_EQ(second.read_reply().status, 200);
}

TEST(Http, RequestsThatDoNotAllFitAreTakenBack) {
  TestServer server;
  server.service().set_max_running(1);
  server.service().set_max_waiting(1);
  server.service().hold(true);
  json::object body = chat_body();
  body["n"] = 3;
  expect_error(server.post(kChatPath, body), 429);
  EXPECT_TRUE(server.service().wait_for_requests(0));
}

TEST(Http, HealthTellsADeadEngine) {  // live-health-tells-dead-engine
  TestServer server({.server = {.model_id = "tiny", .watchdog_s = 60}});
  EXPECT_EQ(server.get("/health").json(), json::value({{"status", "ok"}}));
  server.service().set_trouble(false, 61);
  expect_error(server.get("/health"), 503);
  server.service().set_trouble(true, 0);
  expect_error(server.get("/health"), 503);
  expect_error(server.get("/ready"), 503);
  server.service().set_trouble(false, 59);
  EXPECT_EQ(server.get("/health").status, 200);
}

TEST(Http, RequestIdsAreEchoedOrMade) {  // iso-duplicate-request-id
  TestServer server;
  EXPECT_EQ(server.get("/health", "X-Request-Id: abc-1\r\n").header("X-Request-Id"), "abc-1");
  EXPECT_EQ(server.post(kChatPath, chat_body(), "x-request-id: abc-2\r\n").header("X-Request-Id"),
            "abc-2");
  EXPECT_TRUE(server.get("/health").header("X-Request-Id").starts_with("req-"));
  EXPECT_TRUE(
      server.get("/health", "X-Request-Id: a b\r\n").header("X-Request-Id").starts_with("req-"));
  server.service().hold(true);
  HttpClient first(server.port()), second(server.port());
  json::object body = chat_body();
  body["request_id"] = "same";
  first.send_request("POST", kChatPath, json::serialize(body), "X-Request-Id: same\r\n");
  second.send_request("POST", kChatPath, json::serialize(body), "X-Request-Id: same\r\n");
  ASSERT_TRUE(server.service().wait_for_requests(2));
  first.close();
  ASSERT_TRUE(server.service().wait_for_cancelled(1));
  server.service().hold(false);
  const ClientReply reply = second.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.json().at("id").as_string(), "same");
}

TEST(Http, DrainingFinishesWhatRunsAndRefusesTheRest) {  // shut-sigterm-drains
  TestServer server;
  server.service().hold(true);
  HttpClient running(server.port()), idle(server.port()), late(server.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  running.send_request("POST", kChatPath, chat_text(true));
  ASSERT_TRUE(server.service().wait_for_requests(1));
  late.send("POST /v1/chat/completions HTTP/1.1\r\n");
  server.api().drain();
  expect_error(server.get("/health"), 503);
  expect_error(server.post(kChatPath, chat_body()), 503);
  std::thread draining(
      [&] { EXPECT_TRUE(drain_server(server.api(), server.service(), server.http(), 20)); });
  EXPECT_EQ(idle.read_all(), "");
  const std::string body = chat_text();
  late.send("Host: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  const ClientReply refused = late.read_reply();
  expect_error(refused, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  server.service().hold(false);
  EXPECT_TRUE(running.read_reply().body.ends_with("data: [DONE]\n\n"));
  running.close();
  late.close();
  draining.join();
  EXPECT_FALSE(HttpClient(server.port()).connected());
}

TEST(Http, WhatOutlastsTheGraceIsToldSo) {
  TestServer server;
  server.service().hold(true);
  HttpClient stream(server.port()), whole(server.port());
  stream.send_request("POST", kChatPath, chat_text(true));
  whole.send_request("POST", kChatPath, chat_text());
  ASSERT_TRUE(server.service().wait_for_requests(2));
  std::thread draining(
      [&] { EXPECT_FALSE(drain_server(server.api(), server.service(), server.http(), 0.1)); });
  const ClientReply reply = stream.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.events().back(), "[DONE]");
  EXPECT_NE(reply.events().front().find("\"error\""), std::string::npos);
  expect_error(whole.read_reply(), 503);
  stream.close();
  whole.close();
  draining.join();
}

}  // namespace
}  // namespace winnow
