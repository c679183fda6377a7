// HttpServer: HTTP/1.1 on TCP. Owns the listening socket, the connections and the threads that
// serve them; what is answered is the handler's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "server/http_message.h"

namespace winnow {

struct HttpLimits {
  int64_t max_head_bytes = 64 << 10;
  int64_t max_body_bytes = int64_t{64} << 20;
  double head_timeout_s = 10;            // from the first byte of a request to the end of its head
  double body_timeout_s = 60;            // from there to the end of its body
  double idle_timeout_s = 120;           // between requests
  double write_timeout_s = 30;           // without the client taking a single byte
  int64_t max_unsent_bytes = 768 << 10;  // of a streamed answer; beyond, the client is dropped
  int64_t max_connections = 4096;
};

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0 = any that is free
  int num_threads = 2;
  HttpLimits limits = {};
};

struct HttpCounts {
  int64_t connections = 0;  // open now
  int64_t accepted = 0;
  int64_t timeouts = 0;  // clients that were too slow to ask or to read
  int64_t refused = 0;   // beyond max_connections
};

// Whether a server that listens on `host` can be reached from this machine alone. False for what is
// no address.
bool is_loopback(const std::string& host);

class HttpServer {
 public:
  // Listens and serves from here on. kIo naming the address if it cannot be had. `handler` must
  // outlive the server.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler& handler);
  // Drops all clients.
  ~HttpServer();

  uint16_t port() const;
  std::string url() const;  // "http://127.0.0.1:8080"
  HttpCounts counts() const;

  // Takes no more connections and closes those that wait for nothing; answers under way are
  // finished.
  void drain();
  // Waits until the last connection is gone, at most so long; whether it is.
  bool wait_until_empty(double seconds);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
