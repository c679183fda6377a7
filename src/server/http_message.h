// One HTTP request and its answer as the API sees them: no socket, no framing.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace winnow {

struct HttpHeader {
  std::string name;
  std::string value;
};

// A request up to its body.
struct HttpHead {
  std::string method;
  std::string path;   // the target up to '?'
  std::string query;  // after it
  std::vector<HttpHeader> headers;

  // The first header of that name, whatever its case; empty if there is none.
  std::string_view header(std::string_view name) const;
  bool has_header(std::string_view name) const;
};

struct HttpRequest {
  HttpHead head;
  std::string body;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpHeader> headers = {};
};

// What became of one request, for log and counters.
struct ExchangeSummary {
  std::string method;
  std::string path;
  int status = 0;  // 0 = nothing was sent
  int64_t sent_bytes = 0;
  double seconds = 0;
  bool client_left = false;     // before the answer was complete
  boost::json::object details;  // what the handler had to say of it
};

// The answer to one request. post() may be called from any thread; everything else only from what
// was posted, or from the call that handed the exchange over. Once the client has left, calls do
// nothing. An exchange that is dropped unanswered answers 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  // Runs `task` later, one after the other with all else that concerns this client; not at all if
  // the client has left.
  virtual void post(std::function<void()> task) = 0;

  // Sent with whatever answer follows.
  virtual void add_header(std::string_view name, std::string_view value) = 0;
  // A whole answer, the only one.
  virtual void reply(HttpReply reply) = 0;
  // Or an answer in parts: its head (the body is ignored), parts, the end.
  virtual void begin(const HttpReply& head) = 0;
  virtual void send(std::string_view part) = 0;
  virtual void end() = 0;
  // From now on `part` is sent whenever nothing else was for that many seconds. Requires begin().
  virtual void send_when_silent(double seconds, std::string part) = 0;

  virtual bool client_left() const = 0;
  // From any thread: whether there is nobody left to answer. False may be out of date.
  virtual bool gone() const { return false; }
  // Called once if the client leaves, or is dropped, before the answer is complete.
  virtual void on_client_left(std::function<void()> task) = 0;
  virtual boost::json::object& details() = 0;
};

// Called from several threads, but for one client one after the other; must not block.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Looks at a request whose body has not been read: an answer here spares the body.
  virtual std::optional<HttpReply> check(const HttpHead& head) = 0;
  virtual void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) = 0;
  // An answer to what is no request: `status` 400, 408, 413, 417, 431, 500, 501 or 503.
  virtual HttpReply refusal(int status, std::string_view message) = 0;
  virtual void finished(const ExchangeSummary& summary) = 0;
};

std::string_view reason_phrase(int status);

}  // namespace winnow
