#include "cli/http_calls.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/calls_to.h"
#include "support/scripted_server.h"

namespace winnow {
namespace {

using test::calls_to;
using test::ScriptedServer;

struct Outcome {
  int status = 0;
  std::string body;
  int num_ends = 0;
  std::string failure;  // its kind
};

class Listener final : public HttpCallListener {
 public:
  explicit Listener(Outcome& outcome) : outcome_(outcome) {}
  void on_head(int status) override { outcome_.status = status; }
  void on_body(std::string_view bytes) override { outcome_.body += bytes; }
  void on_end(const std::optional<RequestFailure>& failure) override {
    ++outcome_.num_ends;
    if (failure) outcome_.failure = failure->kind;
  }

 private:
  Outcome& outcome_;
};

Outcome outcome_of(HttpCalls& calls, const HttpCall& call) {
  Outcome outcome;
  calls.start(call, std::make_shared<Listener>(outcome));
  EXPECT_TRUE(calls.run());
  EXPECT_EQ(outcome.num_ends, 1);
  return outcome;
}

TEST(HttpCalls, RequestsSayWhatTheyShould) {
  ScriptedServer server([](const std::string&) { return ScriptedServer::reply(200, "yes"); });
  const auto calls = calls_to(server.port(), {.api_key = "secret"}, "/root");
  const Outcome outcome = outcome_of(*calls, {.path = "/v1/x", .body = "{}"});
  EXPECT_EQ(outcome.status, 200);
  EXPECT_EQ(outcome.body, "yes");
  EXPECT_EQ(outcome.failure, "");
  const std::string request = server.requests().front();
  EXPECT_EQ(request.find("POST /root/v1/x HTTP/1.1\r\n"), 0U) << request;
  for (const char* part : {"\r\nAuthorization: Bearer secret\r\n", "\r\nContent-Length: 2\r\n",
                           "\r\nContent-Type: application/json\r\n", "\r\n\r\n{}"}) {
    EXPECT_NE(request.find(part), std::string::npos) << request;
  }
  EXPECT_NE(request.find("\r\nHost: 127.0.0.1:" + std::to_string(server.port()) + "\r\n"),
            std::string::npos);
}

TEST(HttpCalls, BodiesComeInEveryForm) {
  for (const char* reply :
       {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n3\r\nody\r\n0\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nbody"}) {
    ScriptedServer server([reply](const std::string&) { return reply; });
    const Outcome outcome = outcome_of(*calls_to(server.port()), {.method = "GET", .path = "/"});
    EXPECT_EQ(outcome.body, "body") << reply;
    EXPECT_EQ(outcome.failure, "") << reply;
  }
}

TEST(HttpCalls, APartOfABodyIsToldBeforeTheNextComes) {
  ScriptedServer server([](const std::string&) { return std::nullopt; });
  const auto calls = calls_to(server.port());
  // Sends a part when the last one was heard of.
  class Echo final : public HttpCallListener {
   public:
    explicit Echo(ScriptedServer& asked) : server_(asked) {}
    void on_head(int /*status*/) override { server_.say("3\r\nabc\r\n"); }
    void on_body(std::string_view bytes) override {
      parts.emplace_back(bytes);
      server_.say(parts.size() < 3 ? "3\r\nabc\r\n" : "0\r\n\r\n");
    }
    void on_end(const std::optional<RequestFailure>& failure) override { failed = !!failure; }

    std::vector<std::string> parts;
    bool failed = true;

   private:
    ScriptedServer& server_;
  };
  const auto echo = std::make_shared<Echo>(server);
  calls->start({.path = "/"}, echo);
  std::thread head([&server] {
    server.wait_for_silence();
    server.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  });
  EXPECT_TRUE(calls->run());
  head.join();
  EXPECT_FALSE(echo->failed);
  EXPECT_EQ(echo->parts, (std::vector<std::string>{"abc", "abc", "abc"}));
}

TEST(HttpCalls, BrokenAnswersAreCutOff) {
  for (const char* reply :
       {"", "HTTP/1.1 200", "nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nbody"}) {
    ScriptedServer server([reply](const std::string&) { return reply; });
    const Outcome outcome = outcome_of(*calls_to(server.port()), {.path = "/"});
    EXPECT_EQ(outcome.failure, "cut off") << reply;
  }
}

TEST(HttpCalls, NobodyThereAndSilenceAreTold) {
  uint16_t port = 0;
  {
    ScriptedServer server([](const std::string&) { return std::nullopt; });
    port = server.port();
    const auto calls = calls_to(port, {.silence_limit_s = 0.05});
    EXPECT_EQ(outcome_of(*calls, {.path = "/"}).failure, "timeout");
  }
  EXPECT_EQ(outcome_of(*calls_to(port), {.path = "/"}).failure, "connect");
  const auto answer = http_answer(*calls_to(port), {.path = "/v1/models"});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, ErrorCode::kIo);
  EXPECT_EQ(answer.error().message.find("/v1/models: expected an answer, found 'connect: "), 0U);
}

TEST(HttpCalls, CancellingEndsCallsAndDropsTimers) {
  ScriptedServer server([](const std::string&) { return std::nullopt; });
  const auto calls = calls_to(server.port());
  Outcome outcomes[3];
  for (Outcome& outcome : outcomes) {
    calls->start({.path = "/"}, std::make_shared<Listener>(outcome));
  }
  bool late = false;
  calls->after(3600, [&late] { late = true; });
  calls->after(0.01, [&calls] { calls->cancel_all(); });
  EXPECT_TRUE(calls->run());
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.failure, "cancelled");
    EXPECT_EQ(outcome.num_ends, 1);
  }
  EXPECT_FALSE(late);
  // Afterwards it serves as before.
  bool called = false;
  calls->after(0, [&called] { called = true; });
  EXPECT_TRUE(calls->run());
  EXPECT_TRUE(called);
}

TEST(HttpCalls, AnUnknownHostIsAnError) {
  const auto calls = HttpCalls::create({.host = "256.256.256.256", .port = 1, .root = ""}, {});
  ASSERT_FALSE(calls.ok());
  EXPECT_EQ(calls.error().code, ErrorCode::kIo);
  EXPECT_EQ(calls.error().message.find("http://256.256.256.256:1: expected a host"), 0U);
}

}  // namespace
}  // namespace winnow
