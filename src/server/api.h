// Api: every endpoint of the server behind the HttpHandler interface: who may call what, and which
// function answers.
#pragma once

#include <atomic>
#include <memory>

#include "server/api_keys.h"
#include "server/cors.h"
#include "server/host_policy.h"
#include "server/http_server.h"
#include "server/request_log.h"
#include "server/server_context.h"
#include "server/task_queue.h"

namespace winnow {

struct ApiOptions {
  ApiKeys keys = {};
  CorsPolicy cors = {};
  HostPolicy hosts = {};
  int num_workers = 2;  // threads that parse and tokenise
};

struct Route;

class Api final : public HttpHandler {
 public:
  // `context` and `log` must outlive this and all answers under way.
  Api(const ServerContext& context, ApiOptions options, RequestLog& log);

  // Where the figures of the HTTP side come from; must outlive all requests. From any thread.
  void set_http(const HttpServer* http) { http_.store(http); }
  // From now on what runs the engine is refused, and the server is neither healthy nor ready.
  void drain() { draining_.store(true); }

  std::optional<HttpReply> check(const HttpHead& head) override;
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) override;
  HttpReply refusal(int status, std::string_view message) override;
  void finished(const ExchangeSummary& summary) override;

 private:
  std::optional<HttpReply> refuse(const HttpHead& head) const;
  HttpReply answer_get(const Route& route, const HttpHead& head) const;
  HttpReply metrics_reply() const;
  HttpReply map_reply(const HttpHead& head, const Caller& caller) const;
  // By a worker, since it takes a while.
  void answer_later(const Route& route, HttpHead head, std::shared_ptr<Exchange> exchange);
  void answer_post(const Route& route, HttpRequest request, std::shared_ptr<Exchange> exchange);
  void work_on(Exchange& exchange, int64_t num_bytes, std::function<void()> task);

  const ServerContext& context_;
  const ApiOptions options_;
  RequestLog& log_;
  std::atomic<const HttpServer*> http_{nullptr};
  std::atomic<bool> draining_{false};
  TaskQueue workers_;
};

}  // namespace winnow
