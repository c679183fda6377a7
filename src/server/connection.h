// Connection: one client. Reads its requests one after the other under limits and deadlines, hands
// them to the handler, and writes the answers. All members run on the socket's strand.
#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http_server.h"

namespace winnow {

// What connections share; outlives them all.
struct ConnectionContext {
  HttpHandler& handler;
  const HttpLimits& limits;
  std::atomic<bool> draining{false};
  std::atomic<int64_t> timeouts{0};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // `on_gone` is called when the connection is destroyed, from any thread. `io` is what the socket
  // belongs to: exchanges may outlive the server.
  Connection(std::shared_ptr<void> io, boost::asio::ip::tcp::socket socket,
             ConnectionContext& context, std::function<void(Connection*)> on_gone);
  ~Connection();

  // These three from any thread.
  void start();
  void drain();  // closes if nothing is under way
  void drop();

 private:
  using Clock = std::chrono::steady_clock;
  friend class ConnectionExchange;
  enum class State {
    kIdle,       // no byte of the next request yet
    kHead,       // reading a head
    kBody,       // reading a body
    kAnswering,  // the handler has it
    kRefusing,   // an answer without handler is on its way; then the end
    kLingering,  // all is sent; what the client still sends is thrown away
    kClosed,
  };

  void next_request();
  void read_more();
  void on_read(const boost::system::error_code& error, size_t num_bytes);
  void take_head();
  void on_head(size_t head_bytes);
  void read_body();
  void on_body(const boost::system::error_code& error);
  void refuse(int status, std::string_view message);
  void hand_over();

  void watch();
  void on_watched(const boost::system::error_code& error, size_t num_bytes);

  void reply(HttpReply reply);
  void begin(const HttpReply& head);
  void send(std::string_view part);
  void end();
  void send_when_silent(double seconds, std::string part);
  void abandon(uint64_t exchange);
  std::string head_text(const HttpReply& head, std::optional<size_t> length) const;
  void queue(std::string_view bytes);
  void write();
  void on_written(const boost::system::error_code& error, size_t num_bytes);
  void finish_answer();
  void summarise(bool client_left);
  void await_silence();

  void set_deadline(double seconds);
  void clear_deadline();
  void on_deadline();
  void linger();
  void close();

  std::shared_ptr<void> io_;
  boost::asio::ip::tcp::socket socket_;
  ConnectionContext& context_;
  std::function<void(Connection*)> on_gone_;
  boost::asio::steady_timer deadline_;
  uint64_t deadline_number_ = 0;
  bool deadline_passed_ = false;

  State state_ = State::kIdle;
  std::atomic<bool> closed_{false};  // state_ is kClosed, for other threads
  boost::beast::flat_buffer input_;
  size_t scanned_ = 0;  // of input_, without the end of a head
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  HttpHead head_;
  bool watching_ = false;
  bool next_after_watch_ = false;
  bool client_closed_ = false;  // it sends no more

  // The answer under way.
  uint64_t exchange_ = 0;
  Clock::time_point began_;
  std::vector<HttpHeader> extra_headers_;
  boost::json::object details_;
  std::function<void()> on_client_left_;
  bool keep_alive_ = false;
  bool head_only_ = false;  // HEAD: as GET, without the body
  bool chunked_ = false;
  bool head_sent_ = false;
  bool ended_ = false;
  int status_ = 0;
  int64_t sent_bytes_ = 0;
  std::string unsent_;   // not yet handed to the socket
  std::string writing_;  // being written, from written_ on
  size_t written_ = 0;
  bool is_writing_ = false;
  Clock::time_point writing_since_;  // the client took bytes last
  boost::asio::steady_timer silence_;
  double silence_s_ = 0;
  std::string silence_part_;
  bool was_silent_ = true;
};

}  // namespace winnow
