// Server-sent events, as strictly as the pickiest client reads them: one line of JSON each, LF LF.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace winnow {

HttpReply sse_head();
// "data: {...}\n\n"
std::string sse_event(const boost::json::value& data);
// The same after "event: NAME\n".
std::string sse_named_event(std::string_view name, const boost::json::value& data);

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// A comment, which readers skip.
inline constexpr std::string_view kSsePing = ": ping\n\n";

}  // namespace winnow
