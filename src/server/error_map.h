// Errors as clients see them: which status, type and code an ErrorCode becomes, and the JSON around
// it.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "base/result.h"
#include "server/http_message.h"

namespace winnow {

struct ErrorForm {
  int status = 500;
  std::string_view type = "server_error";
  std::string_view code = {};  // empty = null
};

ErrorForm error_form(ErrorCode code);
// For what is refused by the HTTP side alone.
ErrorForm error_form(int status);

// {"error": {"message", "type", "param", "code"}}. `param` is the request field whose name the
// message begins with, if it does.
boost::json::object error_body(const Error& error);
boost::json::object error_body(const ErrorForm& form, std::string_view message);
// With Retry-After where trying again later may help, and x-should-retry where it cannot.
HttpReply error_reply(const Error& error);
HttpReply error_reply(const ErrorForm& form, std::string_view message);

// For a prompt that does not fit: with both numbers beside the message.
HttpReply context_exceeded_reply(const Error& error, int64_t prompt_tokens, int64_t context_tokens);

}  // namespace winnow
