#include "cli/http_calls.h"

#include <sys/eventfd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/escape.h"
#include "base/file_descriptor.h"
#include "cli/formatted.h"
#include "cli/interrupt.h"

namespace winnow {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using beast::error_code;

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

// One call from the connection to the end of the answer. Handlers keep it alive.
class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(asio::io_context& io, http::request<http::string_body> request,
       std::shared_ptr<HttpCallListener> listener, double silence_limit_s)
      : stream_(io),
        request_(std::move(request)),
        listener_(std::move(listener)),
        silence_limit_s_(silence_limit_s) {
    parser_.eager(true);
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
  }

  void start(const tcp::resolver::results_type& addresses, std::function<void(Call*)> on_gone) {
    on_gone_ = std::move(on_gone);
    allow_silence();
    stream_.async_connect(
        addresses, [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
          self->on_connect(error);
        });
  }

  // The operation under way ends with an error.
  void cancel() {
    cancelled_ = true;
    stream_.close();
  }

 private:
  void allow_silence() { stream_.expires_after(duration_of(silence_limit_s_)); }

  void on_connect(const error_code& error) {
    if (error) return end("connect", error);
    error_code ignored;
    stream_.socket().set_option(tcp::no_delay(true), ignored);
    http::async_write(stream_, request_,
                      [self = shared_from_this()](const error_code& failed, size_t) {
                        // A server may answer, and close, before it has read all; what it said is
                        // then told.
                        if (failed == beast::error::timeout || self->cancelled_)
                          self->end("cut off", failed);
                        else
                          self->read_some();
                      });
  }

  // Reads go past Beast's own read operations, which wait for more than has come.
  void read_some() {
    allow_silence();
    constexpr size_t kMaxReadBytes = 65536;
    stream_.async_read_some(buffer_.prepare(kMaxReadBytes),
                            [self = shared_from_this()](const error_code& error, size_t num_bytes) {
                              self->buffer_.commit(num_bytes);
                              self->on_read(error);
                            });
  }

  void on_read(error_code error) {
    error_code broken;
    if (buffer_.size() > 0) buffer_.consume(parser_.put(buffer_.data(), broken));
    if (broken == http::error::need_more) broken = {};
    if (error == asio::error::eof && parser_.got_some() && !broken) {
      error = {};
      parser_.put_eof(broken);
    }
    if (parser_.is_header_done() && !std::exchange(head_told_, true)) {
      listener_->on_head(static_cast<int>(parser_.get().result_int()));
    }
    std::string& body = parser_.get().body();
    if (!body.empty()) listener_->on_body(body);
    body.clear();
    if (parser_.is_done()) return end("", {});
    if (broken || error || cancelled_) return end("cut off", broken ? broken : error);
    read_some();
  }

  // `kind` counts unless the error has a kind of its own; empty = no failure.
  void end(const char* kind, const error_code& error) {
    stream_.close();
    std::optional<RequestFailure> failure;
    if (cancelled_) {
      failure = {"cancelled", "the run ended first"};
    } else if (error == beast::error::timeout) {
      failure = {"timeout",
                 formatted("expected the server to send something within %g s", silence_limit_s_)};
    } else if (*kind != '\0') {
      failure = {kind, error.message()};
    }
    listener_->on_end(failure);
    on_gone_(this);
  }

  beast::tcp_stream stream_;
  const http::request<http::string_body> request_;
  const std::shared_ptr<HttpCallListener> listener_;
  const double silence_limit_s_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  std::function<void(Call*)> on_gone_;
  bool head_told_ = false;
  bool cancelled_ = false;
};

}  // namespace

struct HttpCalls::Impl {
  Impl(EndpointUrl chosen, HttpCallOptions given)
      : url(std::move(chosen)), options(std::move(given)) {}

  Status resolve();

  const EndpointUrl url;
  const HttpCallOptions options;
  asio::io_context io{1};
  tcp::resolver::results_type addresses;
  std::unordered_set<Call*> calls;
  std::unordered_set<std::shared_ptr<asio::steady_timer>> timers;
  bool cancelled = false;
};

Status HttpCalls::Impl::resolve() {
  error_code error;
  tcp::resolver resolver(io);
  addresses = resolver.resolve(url.host, std::to_string(url.port), error);
  if (!error && !addresses.empty()) return Ok{};
  return fail(ErrorCode::kIo, "%s: expected a host with an address, found '%s'",
              escaped(url.text(), 100).c_str(), error.message().c_str());
}

HttpCalls::HttpCalls(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpCalls::~HttpCalls() = default;

Result<std::unique_ptr<HttpCalls>> HttpCalls::create(const EndpointUrl& url,
                                                     const HttpCallOptions& options) {
  auto impl = std::make_unique<Impl>(url, options);
  TRY_STATUS(impl->resolve());
  return std::unique_ptr<HttpCalls>(new HttpCalls(std::move(impl)));
}

void HttpCalls::start(const HttpCall& call, std::shared_ptr<HttpCallListener> listener) {
  http::request<http::string_body> request(http::string_to_verb(call.method),
                                           impl_->url.root + call.path, 11);
  request.set(http::field::host, impl_->url.authority());
  request.set(http::field::connection, "close");
  request.set(http::field::accept, "application/json, text/event-stream");
  if (!impl_->options.api_key.empty()) {
    request.set(http::field::authorization, "Bearer " + impl_->options.api_key);
  }
  if (!call.body.empty()) request.set(http::field::content_type, "application/json");
  request.body() = call.body;
  request.prepare_payload();
  const auto made = std::make_shared<Call>(impl_->io, std::move(request), std::move(listener),
                                           impl_->options.silence_limit_s);
  impl_->calls.insert(made.get());
  made->start(impl_->addresses, [impl = impl_.get()](Call* gone) { impl->calls.erase(gone); });
}

void HttpCalls::after(double seconds, std::function<void()> action) {
  const auto timer = std::make_shared<asio::steady_timer>(impl_->io, duration_of(seconds));
  impl_->timers.insert(timer);
  timer->async_wait([impl = impl_.get(), timer, action](const error_code& error) {
    impl->timers.erase(timer);
    if (!error && !impl->cancelled) action();
  });
}

void HttpCalls::cancel_all() {
  impl_->cancelled = true;
  for (const auto& timer : impl_->timers) timer->cancel();
  for (Call* call : impl_->calls) call->cancel();
}

bool HttpCalls::run(const std::function<void()>& on_interrupt) {
  const FileDescriptor done(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  impl_->cancelled = false;
  impl_->io.restart();
  std::thread driver([this, &done] {
    impl_->io.run();
    eventfd_write(done.get(), 1);
  });
  const bool undisturbed = interrupt::wait_readable(done.get());
  if (!undisturbed) {
    asio::post(impl_->io, [this, &on_interrupt] {
      if (on_interrupt) on_interrupt();
      cancel_all();
    });
  }
  driver.join();
  if (!undisturbed) {
    // The interrupt may have come after the driver's last look.
    impl_->io.restart();
    impl_->io.run();
  }
  return undisturbed;
}

namespace {

class AnswerListener final : public HttpCallListener {
 public:
  void on_head(int status) override { answer.status = status; }
  void on_body(std::string_view bytes) override { answer.body += bytes; }
  void on_end(const std::optional<RequestFailure>& ending) override { failure = ending; }

  HttpAnswer answer;
  std::optional<RequestFailure> failure;
};

}  // namespace

Result<HttpAnswer> http_answer(HttpCalls& calls, const HttpCall& call) {
  const auto listener = std::make_shared<AnswerListener>();
  calls.start(call, listener);
  if (!calls.run()) return fail(ErrorCode::kInterrupted, "interrupted");
  if (listener->failure) {
    return fail(ErrorCode::kIo, "%s: expected an answer, found '%s: %s'", call.path.c_str(),
                listener->failure->kind.c_str(), listener->failure->message.c_str());
  }
  return std::move(listener->answer);
}

}  // namespace winnow
