// HttpClient: speaks HTTP on a plain socket, so that tests can send what no library would.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace winnow::test {

struct ClientReply {
  int status = 0;  // 0 = the connection ended first
  std::string head;
  std::string body;

  // The value of a header; empty if it is not there.
  std::string header(std::string name) const {
    const auto lower = [](std::string text) {
      for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      return text;
    };
    const std::string all = lower(head);
    const size_t at = all.find("\r\n" + lower(std::move(name)) + ": ");
    if (at == std::string::npos) return {};
    const size_t begin = all.find(": ", at) + 2;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
  boost::json::value json() const {
    boost::json::error_code error;
    boost::json::value value = boost::json::parse(body, error);
    EXPECT_FALSE(error) << body;
    return value;
  }
  // The data of each event.
  std::vector<std::string> events() const {
    std::vector<std::string> found;
    std::string_view rest = body;
    while (!rest.empty()) {
      const size_t end = rest.find("\n\n");
      EXPECT_NE(end, std::string_view::npos) << "an event without end: " << rest;
      if (end == std::string_view::npos) break;
      const std::string_view event = rest.substr(0, end);
      rest.remove_prefix(end + 2);
      if (event.starts_with(':')) continue;
      const size_t data = event.find("data: ");
      EXPECT_NE(data, std::string_view::npos) << event;
      found.emplace_back(event.substr(data + 6));
    }
    return found;
  }
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port, int receive_buffer_bytes = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    if (receive_buffer_bytes > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(int));
    }
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~HttpClient() { close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Closes with a reset.
  void reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close();
  }
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  void send_request(std::string_view method, std::string_view path, std::string_view body = {},
                    std::string_view headers = {}) {
    std::string text =
        std::string(method) + " " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n";
    text += headers;
    if (!body.empty() || method == "POST") {
      text += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n";
    }
    send(text + "\r\n" + std::string(body));
  }

  // Reads until `text` is there; whether it came.
  bool read_until(std::string_view text) {
    while (input_.find(text) == std::string::npos) {
      if (!read_some()) return false;
    }
    return true;
  }
  // All until the connection ends.
  std::string read_all() {
    while (read_some()) {
    }
    return std::exchange(input_, {});
  }
  // One answer; `no_body` after HEAD.
  ClientReply read_reply(bool no_body = false) {
    ClientReply reply;
    if (!read_until("\r\n\r\n")) return reply;
    const size_t end = input_.find("\r\n\r\n") + 4;
    reply.head = input_.substr(0, end);
    input_.erase(0, end);
    reply.status = std::atoi(reply.head.c_str() + 9);
    if (no_body || reply.status == 100 || reply.status == 204) return reply;
    if (reply.header("Transfer-Encoding") == "chunked") {
      while (read_chunk(reply.body)) {
      }
    } else if (const std::string length = reply.header("Content-Length"); !length.empty()) {
      const size_t size = std::stoul(length);
      while (input_.size() < size && read_some()) {
      }
      reply.body = input_.substr(0, size);
      input_.erase(0, reply.body.size());
    } else {
      reply.body = read_all();
    }
    return reply;
  }
  ClientReply get(std::string_view path, std::string_view headers = {}) {
    send_request("GET", path, {}, headers);
    return read_reply();
  }
  ClientReply post(std::string_view path, std::string_view body, std::string_view headers = {}) {
    send_request("POST", path, body, headers);
    return read_reply();
  }
  ClientReply post(std::string_view path, const boost::json::value& body,
                   std::string_view headers = {}) {
    return post(path, std::string_view(boost::json::serialize(body)), headers);
  }

 private:
  bool read_some() {
    char buffer[8192];
    const ssize_t count = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (count <= 0) return false;
    input_.append(buffer, static_cast<size_t>(count));
    return true;
  }
  // Whether another chunk follows.
  bool read_chunk(std::string& body) {
    if (!read_until("\r\n")) return false;
    const size_t size = std::strtoul(input_.c_str(), nullptr, 16);
    const size_t begin = input_.find("\r\n") + 2;
    while (input_.size() < begin + size + 2) {
      if (!read_some()) return false;
    }
    body += input_.substr(begin, size);
    input_.erase(0, begin + size + 2);
    return size > 0;
  }

  int fd_ = -1;
  bool connected_ = false;
  std::string input_;
};

}  // namespace winnow::test
