#include "server/sse.h"

#include <boost/json/serialize.hpp>

namespace winnow {

HttpReply sse_head() {
  HttpReply head;
  head.content_type = "text/event-stream; charset=utf-8";
  head.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  return head;
}

std::string sse_event(const boost::json::value& data) {
  return "data: " + boost::json::serialize(data) + "\n\n";
}

std::string sse_named_event(std::string_view name, const boost::json::value& data) {
  return "event: " + std::string(name) + "\n" + sse_event(data);
}

}  // namespace winnow
