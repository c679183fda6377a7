// HttpCalls: HTTP requests to one server, many under way at once, each on a connection of its own,
// and timers between them; one thread drives all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/endpoint_url.h"
#include "cli/request_record.h"

namespace winnow {

inline constexpr int kHttpOk = 200;

struct HttpCall {
  std::string method = "POST";
  std::string path;  // below the endpoint's root
  std::string body = {};
};

class HttpCallListener {
 public:
  virtual ~HttpCallListener() = default;
  virtual void on_head(int status) = 0;
  virtual void on_body(std::string_view bytes) = 0;
  // Once, after all others. A failure's kind is "connect", "timeout", "cut off" or "cancelled".
  virtual void on_end(const std::optional<RequestFailure>& failure) = 0;
};

struct HttpCallOptions {
  std::string api_key = {};    // none if empty
  double silence_limit_s = 0;  // without a byte of the server, after which a call ends
};

class HttpCalls {
 public:
  // kIo if the endpoint's host is not known.
  static Result<std::unique_ptr<HttpCalls>> create(const EndpointUrl& url,
                                                   const HttpCallOptions& options);
  ~HttpCalls();
  HttpCalls(const HttpCalls&) = delete;
  HttpCalls& operator=(const HttpCalls&) = delete;

  // These three before run(), or by what it calls. The listener lives as long as its call.
  void start(const HttpCall& call, std::shared_ptr<HttpCallListener> listener);
  void after(double seconds, std::function<void()> action);
  // Ends all calls and drops all timers.
  void cancel_all();

  // Returns when no call and no timer is left. Ctrl+C calls `on_interrupt`, if there is one, and
  // then cancel_all(). Everything is called on one thread, which is not the caller's, and none of
  // it after the return. Whether there was no Ctrl+C.
  bool run(const std::function<void()>& on_interrupt = {});

 private:
  struct Impl;
  explicit HttpCalls(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};
// One call alone. kIo if there is no answer, kInterrupted after Ctrl+C.
Result<HttpAnswer> http_answer(HttpCalls& calls, const HttpCall& call);

}  // namespace winnow
