// RequestLog: one line of JSON per request. A log that nobody reads never holds up the server: what
// cannot be written at once is dropped and counted.
#pragma once

#include <atomic>
#include <boost/json/object.hpp>
#include <cstdint>

#include "server/http_message.h"

namespace winnow {

class RequestLog {
 public:
  // Writes to the file descriptor, which must stay open; -1 = nowhere.
  explicit RequestLog(int fd) : fd_(fd) {}

  // From any thread.
  void write(const ExchangeSummary& summary);
  void write(boost::json::object line);
  int64_t num_dropped() const { return num_dropped_.load(); }

 private:
  const int fd_;
  std::atomic<int64_t> num_dropped_{0};
};

}  // namespace winnow
