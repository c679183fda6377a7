// The body of /v1/responses, read as a conversation. Nothing is kept between requests: the input
// holds the whole history.
#pragma once

#include <boost/json/object.hpp>

#include "server/chat_request.h"

namespace winnow {

// Requires that check_fields(request, kResponses) passed. Items and tools of unknown types are left
// out, since clients send what other servers know. kInvalidArgument naming a field; kUnsupported
// for a stored response to continue.
Result<ChatRequest> read_response_request(const boost::json::object& request,
                                          const SettingsContext& context);

}  // namespace winnow
