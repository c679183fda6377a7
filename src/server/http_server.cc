#include "server/http_server.h"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/escape.h"
#include "server/connection.h"

namespace winnow {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// The open connections; outlives the server where an exchange does.
struct Registry {
  void forget(Connection* connection);
  std::vector<std::shared_ptr<Connection>> open();

  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_map<Connection*, std::weak_ptr<Connection>> connections;
  int64_t num_open = 0;
};

// What a handler throws, for want of memory, ends with its connection; the others are served on.
void serve(asio::io_context& io) {
  for (;;) {
    try {
      io.run();
      return;
    } catch (const std::exception&) {
      continue;
    }
  }
}

void Registry::forget(Connection* connection) {
  const std::lock_guard lock(mutex);
  connections.erase(connection);
  --num_open;
  changed.notify_all();
}

std::vector<std::shared_ptr<Connection>> Registry::open() {
  const std::lock_guard lock(mutex);
  std::vector<std::shared_ptr<Connection>> found;
  for (const auto& [pointer, weak] : connections) {
    if (std::shared_ptr<Connection> connection = weak.lock()) {
      found.push_back(std::move(connection));
    }
  }
  return found;
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpServerOptions& chosen, HttpHandler& handler)
      : options(chosen), context{handler, options.limits} {}

  Status listen();
  void accept();
  void on_accept(const error_code& error, tcp::socket socket);
  std::shared_ptr<Connection> admit(tcp::socket socket);
  void stop();

  const HttpServerOptions options;
  ConnectionContext context;
  const std::shared_ptr<asio::io_context> io = std::make_shared<asio::io_context>();
  // The threads stay until the end, whether or not there is something to do.
  asio::executor_work_guard<asio::io_context::executor_type> work{io->get_executor()};
  tcp::acceptor acceptor{asio::make_strand(*io)};
  asio::steady_timer retry{acceptor.get_executor()};
  std::vector<std::thread> threads;
  tcp::endpoint endpoint;

  const std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  std::atomic<int64_t> num_accepted{0};
  std::atomic<int64_t> num_refused{0};
};

bool is_loopback(const std::string& host) {
  asio::io_context io;
  error_code error;
  // The first address, as for listening.
  const auto found = tcp::resolver(io).resolve(host, "0", error);
  return !error && !found.empty() && found.begin()->endpoint().address().is_loopback();
}

Status HttpServer::Impl::listen() {
  const auto failed = [this](const char* what, const error_code& error) {
    return fail(ErrorCode::kIo, "%s:%u: %s: %s", escaped(options.host, 80).c_str(),
                static_cast<unsigned>(options.port), what, error.message().c_str());
  };
  error_code error;
  tcp::resolver resolver(*io);
  const auto found = resolver.resolve(options.host, std::to_string(options.port), error);
  if (error || found.empty()) return failed("expected an address of this machine", error);
  endpoint = found.begin()->endpoint();
  if (acceptor.open(endpoint.protocol(), error); error) return failed("socket", error);
  acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (acceptor.bind(endpoint, error); error) return failed("cannot be bound", error);
  if (acceptor.listen(asio::socket_base::max_listen_connections, error); error) {
    return failed("cannot be listened on", error);
  }
  endpoint = acceptor.local_endpoint(error);
  return Ok{};
}

void HttpServer::Impl::accept() {
  acceptor.async_accept(
      asio::make_strand(*io),
      [this](const error_code& error, tcp::socket socket) { on_accept(error, std::move(socket)); });
}

void HttpServer::Impl::on_accept(const error_code& error, tcp::socket socket) {
  if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
  if (error) {
    // Out of descriptors, mostly: connections that end give some back.
    retry.expires_after(std::chrono::milliseconds(100));
    retry.async_wait([this](const error_code& cancelled) {
      if (!cancelled) accept();
    });
    return;
  }
  num_accepted.fetch_add(1);
  if (const std::shared_ptr<Connection> connection = admit(std::move(socket))) connection->start();
  accept();
}

// None if there are too many: the socket is closed.
std::shared_ptr<Connection> HttpServer::Impl::admit(tcp::socket socket) {
  const std::lock_guard lock(registry->mutex);
  if (registry->num_open >= options.limits.max_connections) {
    num_refused.fetch_add(1);
    return nullptr;
  }
  const auto connection = std::make_shared<Connection>(
      io, std::move(socket), context, [r = registry](Connection* gone) { r->forget(gone); });
  registry->connections.emplace(connection.get(), connection);
  ++registry->num_open;
  return connection;
}

void HttpServer::Impl::stop() {
  context.draining.store(true);
  asio::post(acceptor.get_executor(), [this] {
    error_code ignored;
    acceptor.close(ignored);
    retry.cancel();
  });
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler& handler) {
  auto impl = std::make_unique<Impl>(options, handler);
  TRY_STATUS(impl->listen());
  impl->accept();
  for (int i = 0; i < options.num_threads; ++i) {
    impl->threads.emplace_back([io = impl->io] { serve(*io); });
  }
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::~HttpServer() {
  impl_->stop();
  for (const auto& connection : impl_->registry->open()) connection->drop();
  // With all sockets closed the threads run out of work.
  impl_->work.reset();
  for (std::thread& thread : impl_->threads) thread.join();
  // What was posted too late for them holds connections.
  impl_->io->restart();
  impl_->io->poll();
}

uint16_t HttpServer::port() const { return impl_->endpoint.port(); }

std::string HttpServer::url() const {
  const std::string address = impl_->endpoint.address().to_string();
  const bool v6 = impl_->endpoint.address().is_v6();
  return "http://" + (v6 ? "[" + address + "]" : address) + ":" + std::to_string(port());
}

HttpCounts HttpServer::counts() const {
  const std::lock_guard lock(impl_->registry->mutex);
  return {.connections = impl_->registry->num_open,
          .accepted = impl_->num_accepted.load(),
          .timeouts = impl_->context.timeouts.load(),
          .refused = impl_->num_refused.load()};
}

void HttpServer::drain() {
  impl_->stop();
  for (const auto& connection : impl_->registry->open()) connection->drain();
}

bool HttpServer::wait_until_empty(double seconds) {
  Registry& registry = *impl_->registry;
  std::unique_lock lock(registry.mutex);
  return registry.changed.wait_for(lock, std::chrono::duration<double>(seconds),
                                   [&registry] { return registry.num_open == 0; });
}

}  // namespace winnow
