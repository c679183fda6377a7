// Metrics: what the server counts, as Prometheus reads it. Names are never changed, only added: the
// `vllm:` ones are what routers and dashboards look for.
#pragma once

#include <memory>
#include <string>

#include "engine/batching_service.h"
#include "engine/generation_service.h"
#include "server/http_server.h"

namespace winnow {

// All members are thread-safe and quick.
class Metrics {
 public:
  Metrics(const std::string& model_name, int64_t context_tokens);
  ~Metrics();

  void on_end(const RequestEnd& end);
  void on_gap(double seconds);  // between two tokens of an answer
  void on_step(const StepReport& step);
  void on_http(int status, bool client_left);

  // The exposition text; what `status` and `http` say is read now.
  std::string text(const ServiceStatus& status, const HttpCounts& http);
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
