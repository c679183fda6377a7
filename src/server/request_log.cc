#include "server/request_log.h"

#include <poll.h>
#include <unistd.h>

#include <boost/json/serialize.hpp>
#include <chrono>
#include <climits>
#include <string>

#include "base/escape.h"

namespace winnow {

void RequestLog::write(const ExchangeSummary& summary) {
  boost::json::object line;
  line["event"] = "request";
  line["method"] = escaped(summary.method, 16);
  line["path"] = escaped(summary.path, 120);
  line["status"] = summary.status;
  line["sent_bytes"] = summary.sent_bytes;
  line["ms"] = summary.seconds * 1e3;
  if (summary.client_left) line["client_left"] = true;
  for (const auto& detail : summary.details) line[detail.key()] = detail.value();
  write(std::move(line));
}

void RequestLog::write(boost::json::object line) {
  if (fd_ < 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  boost::json::object whole;
  whole["time"] =
      static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count()) / 1e3;
  for (const auto& member : line) whole[member.key()] = member.value();
  const std::string text = boost::json::serialize(whole) + "\n";
  // A pipe that has room for one takes a line of this size whole, without waiting.
  pollfd ready{.fd = fd_, .events = POLLOUT, .revents = 0};
  const bool fits =
      text.size() <= PIPE_BUF && poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
  if (!fits || ::write(fd_, text.data(), text.size()) < 0) num_dropped_.fetch_add(1);
}

}  // namespace winnow
