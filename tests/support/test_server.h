// TestServer: the whole server on a free port, with a FakeService behind it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/api.h"
#include "support/fake_service.h"
#include "support/golden.h"
#include "support/http_client.h"

namespace winnow::test {

struct TestServerOptions {
  ServerOptions server = {.model_id = "tiny"};
  HttpLimits limits = {};
  std::vector<std::string> keys = {};
  std::string origins = "localhost";
  HostPolicy hosts = {};
  std::string answer = "Hello, world";
  int64_t context_tokens = 4096;
  bool chat = true;
  PrefixFolder* prefixes = nullptr;
  FakeService::Script script = {};  // instead of `answer`
  AnswerParserFactory parsers = make_answer_parser;
  std::string chat_template =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
};

class TestServer {
 public:
  explicit TestServer(TestServerOptions options = {}) {
    auto loaded = Model::load(golden_path("tiny/llama-untied.gguf"));
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    model_ = *loaded;
    Metadata metadata = model_->file().metadata();
    auto made = Tokenizer::create(metadata);
    EXPECT_TRUE(made.ok()) << made.error().message;
    tokenizer_ = std::move(made).value();
    metadata.set("tokenizer.chat_template", options.chat_template);
    if (options.chat) {
      auto chat = ChatPrompt::create(metadata, *tokenizer_);
      EXPECT_TRUE(chat.ok()) << chat.error().message;
      chat_ = std::make_unique<ChatPrompt>(std::move(chat).value());
    }
    if (!options.script) {
      options.script = [ids = tokenizer_->encode(options.answer)](const ServiceRequest&) {
        return ids;
      };
    }
    service_ = std::make_unique<FakeService>(model_, options.script, options.context_tokens);
    shaper_ =
        std::make_unique<AnswerShaper>(options.chat ? options.chat_template : "", *tokenizer_);
    metrics_ = std::make_unique<Metrics>(options.server.model_id, options.context_tokens);
    context_.reset(new ServerContext{.service = *service_,
                                     .tokenizer = *tokenizer_,
                                     .chat = chat_.get(),
                                     .metrics = *metrics_,
                                     .maps = maps_,
                                     .shaper = *shaper_,
                                     .options = options.server,
                                     .prefixes = options.prefixes,
                                     .parsers = options.parsers,
                                     .started = 1});
    api_ = std::make_unique<Api>(*context_,
                                 ApiOptions{.keys = ApiKeys::create(options.keys).value(),
                                            .cors = CorsPolicy::parse(options.origins).value(),
                                            .hosts = options.hosts},
                                 log_);
    auto started = HttpServer::start({.limits = options.limits}, *api_);
    EXPECT_TRUE(started.ok()) << started.error().message;
    http_ = std::move(started).value();
    api_->set_http(http_.get());
  }
  ~TestServer() {
    http_.reset();
    api_.reset();
    service_.reset();
  }

  uint16_t port() const { return http_->port(); }
  FakeService& service() { return *service_; }
  HttpServer& http() { return *http_; }
  Api& api() { return *api_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  std::unique_ptr<HttpClient> connect() { return std::make_unique<HttpClient>(port()); }

  ClientReply get(std::string_view path, std::string_view headers = {}) {
    return connect()->get(path, headers);
  }
  ClientReply post(std::string_view path, const boost::json::value& body,
                   std::string_view headers = {}) {
    return connect()->post(path, body, headers);
  }

 private:
  std::shared_ptr<const Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SelectionMaps maps_;
  std::unique_ptr<ChatPrompt> chat_;
  std::unique_ptr<FakeService> service_;
  std::unique_ptr<AnswerShaper> shaper_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<ServerContext> context_;
  RequestLog log_{-1};
  std::unique_ptr<Api> api_;
  std::unique_ptr<HttpServer> http_;
};

inline constexpr const char* kChatPath = "/v1/chat/completions";

inline boost::json::object chat_body(std::string_view content = "Hi") {
  return {{"messages",
           boost::json::array{boost::json::object{{"role", "user"}, {"content", content}}}}};
}

}  // namespace winnow::test
