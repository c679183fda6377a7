// ScriptedServer: answers HTTP requests with bytes that a test chose, right or wrong, each on a
// connection of its own that it then closes.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace winnow::test {

class ScriptedServer {
 public:
  // The bytes that answer a request, head and body as they came; none = the connection stays open
  // and silent.
  using Script = std::function<std::optional<std::string>(const std::string& request)>;

  explicit ScriptedServer(Script script) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 64);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    for (const int fd : silent_) ::close(fd);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  uint16_t port() const { return port_; }
  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  // Waits until a connection is silent.
  void wait_for_silence() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !silent_.empty(); });
  }
  // Sends bytes on the first silent connection. Requires that there is one.
  void say(const std::string& text) {
    const std::lock_guard lock(mutex_);
    send_all(silent_.front(), text);
  }

  static std::string reply(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) +
           " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void serve() {
    for (int fd = ::accept(listener_, nullptr, nullptr); fd >= 0;
         fd = ::accept(listener_, nullptr, nullptr)) {
      const std::string request = read_request(fd);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      const std::optional<std::string> answer = script_(request);
      if (answer) {
        send_all(fd, *answer);
        ::close(fd);
      } else {
        const std::lock_guard lock(mutex_);
        silent_.push_back(fd);
        changed_.notify_all();
      }
    }
  }

  static std::string read_request(int fd) {
    std::string text;
    size_t size = std::string::npos;  // of head and body, once it is known
    while (text.size() < size) {
      char buffer[4096];
      const ssize_t count = ::recv(fd, buffer, sizeof(buffer), 0);
      if (count <= 0) break;
      text.append(buffer, static_cast<size_t>(count));
      const size_t head = text.find("\r\n\r\n");
      if (head == std::string::npos) continue;
      const size_t length = text.find("Content-Length: ");
      size = head + 4 + (length < head ? std::strtoul(text.c_str() + length + 16, nullptr, 10) : 0);
    }
    return text;
  }

  static void send_all(int fd, const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  const Script script_;
  int listener_ = -1;
  uint16_t port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> requests_;
  std::vector<int> silent_;
  std::thread thread_;
};

}  // namespace winnow::test
