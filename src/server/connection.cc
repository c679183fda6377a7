#include "server/connection.h"

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <cstdio>

#include "server/framing_check.h"

namespace winnow {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr size_t kReadBytes = 16 << 10;
constexpr double kLingerSeconds = 2;
constexpr std::chrono::milliseconds kStallTime(500);
constexpr size_t kMostUnsentBytes = size_t{64} << 20;

std::chrono::nanoseconds as_duration(double seconds) {
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

std::string text_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

HttpHead to_head(const http::request_header<>& header) {
  HttpHead head;
  head.method = text_of(header.method_string());
  const std::string target = text_of(header.target());
  const size_t mark = target.find('?');
  head.path = target.substr(0, mark);
  if (mark != std::string::npos) head.query = target.substr(mark + 1);
  for (const auto& field : header) {
    head.headers.push_back({text_of(field.name_string()), text_of(field.value())});
  }
  return head;
}

}  // namespace

// The handler's end of one answer. A number tells it from later ones of the same connection.
class ConnectionExchange final : public Exchange {
 public:
  ConnectionExchange(std::shared_ptr<Connection> connection, uint64_t number)
      : connection_(std::move(connection)), number_(number) {}
  ~ConnectionExchange() override {
    if (connection_->closed_.load()) return;
    asio::post(connection_->socket_.get_executor(),
               [c = connection_, number = number_] { c->abandon(number); });
  }

  void post(std::function<void()> task) override {
    // Nobody may be left to run it, and nothing is left to be said.
    if (connection_->closed_.load()) return;
    asio::post(connection_->socket_.get_executor(), std::move(task));
  }
  bool gone() const override { return connection_->closed_.load(); }
  void add_header(std::string_view name, std::string_view value) override {
    if (current()) connection_->extra_headers_.push_back({std::string(name), std::string(value)});
  }
  void reply(HttpReply reply) override {
    if (current()) connection_->reply(std::move(reply));
  }
  void begin(const HttpReply& head) override {
    if (current()) connection_->begin(head);
  }
  void send(std::string_view part) override {
    if (current()) connection_->send(part);
  }
  void end() override {
    if (current()) connection_->end();
  }
  void send_when_silent(double seconds, std::string part) override {
    if (current()) connection_->send_when_silent(seconds, std::move(part));
  }
  bool client_left() const override { return !current(); }
  void on_client_left(std::function<void()> task) override {
    if (current()) {
      connection_->on_client_left_ = std::move(task);
    } else {
      task();
    }
  }
  boost::json::object& details() override { return current() ? connection_->details_ : unread_; }

 private:
  bool current() const {
    return connection_->exchange_ == number_ &&
           connection_->state_ == Connection::State::kAnswering && !connection_->ended_;
  }

  std::shared_ptr<Connection> connection_;
  uint64_t number_;
  boost::json::object unread_;
};

Connection::Connection(std::shared_ptr<void> io, asio::ip::tcp::socket socket,
                       ConnectionContext& context, std::function<void(Connection*)> on_gone)
    : io_(std::move(io)),
      socket_(std::move(socket)),
      context_(context),
      on_gone_(std::move(on_gone)),
      deadline_(socket_.get_executor()),
      input_(static_cast<size_t>(context.limits.max_head_bytes)),
      silence_(socket_.get_executor()) {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

Connection::~Connection() { on_gone_(this); }

void Connection::start() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->next_request(); });
}

void Connection::drain() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] {
    if (self->state_ == State::kIdle) self->close();
  });
}

void Connection::drop() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->close(); });
}

void Connection::next_request() {
  if (state_ == State::kClosed) return;
  parser_.emplace();
  parser_->body_limit(static_cast<uint64_t>(context_.limits.max_body_bytes));
  parser_->header_limit(static_cast<uint32_t>(context_.limits.max_head_bytes));
  scanned_ = 0;
  state_ = State::kIdle;
  if (context_.draining.load()) return close();
  if (input_.size() > 0) return take_head();
  set_deadline(context_.limits.idle_timeout_s);
  read_more();
}

void Connection::read_more() {
  const size_t room = std::min(kReadBytes, input_.max_size() - input_.size());
  socket_.async_read_some(input_.prepare(room),
                          [self = shared_from_this()](const error_code& error, size_t num_bytes) {
                            self->on_read(error, num_bytes);
                          });
}

void Connection::on_read(const error_code& error, size_t num_bytes) {
  if (state_ == State::kClosed) return;
  if (deadline_passed_ && state_ == State::kHead) {
    return refuse(408, "the head of the request did not arrive in time");
  }
  if (error) return close();
  input_.commit(num_bytes);
  take_head();
}

void Connection::take_head() {
  if (state_ == State::kIdle) {
    state_ = State::kHead;
    set_deadline(context_.limits.head_timeout_s);
  }
  const std::string_view bytes(static_cast<const char*>(input_.data().data()), input_.size());
  const std::optional<size_t> end = find_head_end(bytes, scanned_);
  if (end) return on_head(*end);
  scanned_ = bytes.size();
  if (bytes.size() >= input_.max_size()) {
    return refuse(431, "the head of the request is longer than " +
                           std::to_string(input_.max_size()) + " bytes");
  }
  read_more();
}

void Connection::on_head(size_t head_bytes) {
  const std::string_view bytes(static_cast<const char*>(input_.data().data()), head_bytes);
  const Status framing = check_framing(bytes);
  if (!framing.ok()) return refuse(400, framing.error().message);
  error_code error;
  parser_->put(asio::buffer(bytes), error);
  if (error == http::error::body_limit) {
    return refuse(413, "the body is longer than " + std::to_string(context_.limits.max_body_bytes) +
                           " bytes");
  }
  if (error || !parser_->is_header_done()) return refuse(400, "this is no HTTP request");
  input_.consume(head_bytes);
  head_ = to_head(parser_->get().base());
  keep_alive_ = parser_->keep_alive();
  chunked_ = parser_->get().version() == 11;
  head_only_ = head_.method == "HEAD";
  std::optional<HttpReply> early = context_.handler.check(head_);
  const std::string expect(head_.header("Expect"));
  if (!early && !expect.empty() && !boost::beast::iequals(expect, "100-continue")) {
    early = context_.handler.refusal(417, "Expect: only 100-continue is known");
  }
  if (early) {
    // The body stays unread, so nothing that follows it can be told from it.
    keep_alive_ = keep_alive_ && parser_->is_done();
    ++exchange_;
    began_ = std::chrono::steady_clock::now();
    state_ = State::kAnswering;
    return reply(std::move(*early));
  }
  if (parser_->is_done()) return hand_over();
  state_ = State::kBody;
  set_deadline(context_.limits.body_timeout_s);
  if (expect.empty()) return read_body();
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(kContinue),
                    [self = shared_from_this()](const error_code& failed, size_t) {
                      if (failed) return self->close();
                      self->read_body();
                    });
}

void Connection::read_body() {
  if (state_ == State::kClosed) return;
  http::async_read(
      socket_, input_, *parser_,
      [self = shared_from_this()](const error_code& error, size_t) { self->on_body(error); });
}

void Connection::on_body(const error_code& error) {
  if (state_ == State::kClosed) return;
  if (deadline_passed_) return refuse(408, "the body of the request did not arrive in time");
  if (error == http::error::body_limit) {
    return refuse(413, "the body is longer than " + std::to_string(context_.limits.max_body_bytes) +
                           " bytes");
  }
  const bool bad_body = error.category() == make_error_code(http::error::bad_chunk).category() &&
                        error != http::error::partial_message &&
                        error != http::error::end_of_stream;
  if (error && bad_body) return refuse(400, "the body is not framed as HTTP");
  if (error) return close();
  hand_over();
}

void Connection::refuse(int status, std::string_view message) {
  if (status == 408) context_.timeouts.fetch_add(1);
  keep_alive_ = false;
  head_only_ = false;
  ++exchange_;
  began_ = std::chrono::steady_clock::now();
  state_ = State::kAnswering;
  reply(context_.handler.refusal(status, message));
  state_ = state_ == State::kAnswering ? State::kRefusing : state_;
}

void Connection::hand_over() {
  clear_deadline();
  state_ = State::kAnswering;
  ++exchange_;
  began_ = std::chrono::steady_clock::now();
  if (context_.draining.load()) keep_alive_ = false;
  HttpRequest request{head_, std::move(parser_->get().body())};
  parser_.reset();
  watch();
  context_.handler.handle(std::move(request),
                          std::make_shared<ConnectionExchange>(shared_from_this(), exchange_));
}

// A client that leaves is noticed by reading; what it sends meanwhile is kept for later.
void Connection::watch() {
  const size_t room = std::min(kReadBytes, input_.max_size() - input_.size());
  if (room == 0) return;
  watching_ = true;
  socket_.async_read_some(input_.prepare(room),
                          [self = shared_from_this()](const error_code& error, size_t num_bytes) {
                            self->on_watched(error, num_bytes);
                          });
}

void Connection::on_watched(const error_code& error, size_t num_bytes) {
  watching_ = false;
  if (state_ == State::kClosed) return;
  if (!error) input_.commit(num_bytes);
  if (next_after_watch_) {
    next_after_watch_ = false;
    if (error && error != asio::error::operation_aborted) return close();
    return next_request();
  }
  if (state_ != State::kAnswering) return;
  if (error && error != asio::error::operation_aborted) {
    client_closed_ = true;
    // The last bytes may have been taken: the write will tell.
    if (!ended_ || !is_writing_) close();
    return;
  }
  watch();
}

std::string Connection::head_text(const HttpReply& head, std::optional<size_t> length) const {
  std::string text = "HTTP/1.1 " + std::to_string(head.status) + " ";
  text += reason_phrase(head.status);
  text += "\r\n";
  const auto add = [&text](std::string_view name, std::string_view value) {
    text.append(name).append(": ").append(value).append("\r\n");
  };
  if (!head.content_type.empty() && head.status != 204) add("Content-Type", head.content_type);
  for (const HttpHeader& header : head.headers) add(header.name, header.value);
  for (const HttpHeader& header : extra_headers_) add(header.name, header.value);
  if (length && head.status != 204) add("Content-Length", std::to_string(*length));
  if (!length && chunked_) add("Transfer-Encoding", "chunked");
  add("Connection", keep_alive_ ? "keep-alive" : "close");
  return text + "\r\n";
}

void Connection::reply(HttpReply reply) {
  status_ = reply.status;
  head_sent_ = true;
  queue(head_text(reply, reply.body.size()));
  if (!head_only_ && reply.status != 204) queue(reply.body);
  ended_ = true;
  write();
}

void Connection::begin(const HttpReply& head) {
  if (head_sent_) return;
  status_ = head.status;
  head_sent_ = true;
  // Without chunks only the end of the connection ends the answer.
  if (!chunked_) keep_alive_ = false;
  queue(head_text(head, std::nullopt));
  write();
}

void Connection::send(std::string_view part) {
  if (part.empty() || head_only_) return;
  was_silent_ = false;
  // One part may be large; a client that leaves it lying is told from one that has not had the
  // time.
  const size_t waiting = unsent_.size() + writing_.size() - written_;
  const bool stalls = is_writing_ && Clock::now() - writing_since_ > kStallTime;
  if ((stalls && waiting > static_cast<size_t>(context_.limits.max_unsent_bytes)) ||
      waiting > kMostUnsentBytes) {
    context_.timeouts.fetch_add(1);
    return close();
  }
  if (chunked_) {
    char size[24];
    std::snprintf(size, sizeof(size), "%zx\r\n", part.size());
    queue(size);
    queue(part);
    queue("\r\n");
  } else {
    queue(part);
  }
  write();
}

void Connection::end() {
  if (chunked_ && !head_only_) queue("0\r\n\r\n");
  ended_ = true;
  silence_.cancel();
  write();
}

void Connection::abandon(uint64_t exchange) {
  if (exchange != exchange_ || state_ != State::kAnswering || ended_) return;
  // An answer that has begun cannot be told to have failed other than by its missing end.
  if (head_sent_) return close();
  reply(context_.handler.refusal(500, "the request was given up"));
}

void Connection::send_when_silent(double seconds, std::string part) {
  silence_s_ = seconds;
  silence_part_ = std::move(part);
  await_silence();
}

void Connection::await_silence() {
  was_silent_ = true;
  silence_.expires_after(as_duration(silence_s_));
  silence_.async_wait([self = shared_from_this(), exchange = exchange_](const error_code& error) {
    const bool current = self->exchange_ == exchange && self->state_ == State::kAnswering;
    if (error || !current || self->ended_) return;
    if (self->was_silent_) self->send(self->silence_part_);
    if (self->state_ == State::kAnswering) self->await_silence();
  });
}

void Connection::queue(std::string_view bytes) { unsent_.append(bytes); }

void Connection::write() {
  if (is_writing_ || state_ == State::kClosed) return;
  if (written_ == writing_.size()) {
    writing_.clear();
    written_ = 0;
    writing_.swap(unsent_);
  }
  if (writing_.empty()) {
    if (ended_) finish_answer();
    return;
  }
  is_writing_ = true;
  writing_since_ = Clock::now();
  set_deadline(context_.limits.write_timeout_s);
  socket_.async_write_some(asio::buffer(writing_.data() + written_, writing_.size() - written_),
                           [self = shared_from_this()](const error_code& error, size_t num_bytes) {
                             self->on_written(error, num_bytes);
                           });
}

void Connection::on_written(const error_code& error, size_t num_bytes) {
  is_writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return close();
  clear_deadline();
  written_ += num_bytes;
  sent_bytes_ += static_cast<int64_t>(num_bytes);
  write();
}

void Connection::finish_answer() {
  summarise(false);
  if (!keep_alive_ || client_closed_) return linger();
  if (!watching_) return next_request();
  state_ = State::kIdle;
  next_after_watch_ = true;
  socket_.cancel();
}

// Tells the handler what became of the answer and forgets it.
void Connection::summarise(bool client_left) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  context_.handler.finished({.method = head_.method,
                             .path = head_.path,
                             .status = status_,
                             .sent_bytes = sent_bytes_,
                             .seconds = seconds,
                             .client_left = client_left,
                             .details = std::move(details_)});
  on_client_left_ = nullptr;
  extra_headers_.clear();
  details_ = {};
  head_ = {};
  head_sent_ = ended_ = false;
  status_ = 0;
  sent_bytes_ = 0;
  ++exchange_;
}

void Connection::set_deadline(double seconds) {
  deadline_passed_ = false;
  deadline_.expires_after(as_duration(seconds));
  deadline_.async_wait(
      [self = shared_from_this(), number = ++deadline_number_](const error_code& error) {
        if (!error && number == self->deadline_number_) self->on_deadline();
      });
}

void Connection::clear_deadline() {
  ++deadline_number_;
  deadline_passed_ = false;
  deadline_.cancel();
}

void Connection::on_deadline() {
  if (state_ == State::kHead || state_ == State::kBody) {
    // The read returns, sees that the time is up and answers 408.
    deadline_passed_ = true;
    socket_.cancel();
    return;
  }
  if (state_ == State::kAnswering || state_ == State::kRefusing) context_.timeouts.fetch_add(1);
  close();
}

// Closing with bytes unread would reset the connection and take the answer back from the client.
void Connection::linger() {
  error_code ignored;
  const bool first = state_ != State::kLingering;
  if (first) {
    state_ = State::kLingering;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    set_deadline(kLingerSeconds);
    if (watching_) socket_.cancel();
  }
  input_.consume(input_.size());
  socket_.async_read_some(input_.prepare(std::min(kReadBytes, input_.max_size())),
                          [self = shared_from_this()](const error_code& error, size_t) {
                            if (error && error != asio::error::operation_aborted) {
                              return self->close();
                            }
                            if (self->state_ == State::kLingering) self->linger();
                          });
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  const bool answering = state_ == State::kAnswering || state_ == State::kRefusing;
  state_ = State::kClosed;
  closed_.store(true);
  clear_deadline();
  silence_.cancel();
  error_code ignored;
  socket_.close(ignored);
  if (!answering) return;
  const std::function<void()> told = std::move(on_client_left_);
  summarise(true);
  if (told) told();
}

}  // namespace winnow
