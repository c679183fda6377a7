// EndpointUrl: where a server of the OpenAI API is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace winnow {

struct EndpointUrl {
  std::string host;  // an IPv6 address without its brackets
  uint16_t port = 80;
  std::string root;  // path in front of /v1 and /tokenize: empty, or begins but does not end with /

  // What the Host header says.
  std::string authority() const;
  // "http://HOST:PORT/ROOT"
  std::string text() const;
};

// "http://HOST[:PORT][/ROOT][/v1]"; "http://" may be left out. kInvalidArgument naming `name`, what
// was expected and what was found: https, user names, queries and fragments are refused.
Result<EndpointUrl> parse_endpoint_url(std::string_view text, const std::string& name);

}  // namespace winnow
