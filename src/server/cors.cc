#include "server/cors.h"

#include <algorithm>

#include "base/escape.h"
#include "server/error_map.h"

namespace winnow {
namespace {

// The host of "scheme://host[:port]"; empty if it is no such thing.
std::string_view host_of(std::string_view origin) {
  const size_t scheme = origin.find("://");
  if (scheme == std::string_view::npos || scheme == 0) return {};
  std::string_view host = origin.substr(scheme + 3);
  if (host.find_first_of("/?#@ ") != std::string_view::npos) return {};
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_local(std::string_view origin) {
  const std::string_view host = host_of(origin);
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

}  // namespace

Result<CorsPolicy> CorsPolicy::parse(std::string_view text) {
  CorsPolicy policy;
  if (text == "localhost") return policy;
  if (text == "none" || text == "*") {
    policy.mode_ = text == "*" ? Mode::kAny : Mode::kNone;
    return policy;
  }
  policy.mode_ = Mode::kList;
  while (true) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view origin = text.substr(0, comma);
    if (host_of(origin).empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "origin: expected localhost, none, * or SCHEME://HOST[:PORT], found '%s'",
                  escaped(origin, 80).c_str());
    }
    policy.origins_.emplace_back(origin);
    if (comma == text.size()) return policy;
    text.remove_prefix(comma + 1);
  }
}

bool CorsPolicy::allows(std::string_view origin) const {
  switch (mode_) {
    case Mode::kLocal:
      return is_local(origin);
    case Mode::kNone:
      return false;
    case Mode::kAny:
      return true;
    case Mode::kList:
      return std::find(origins_.begin(), origins_.end(), origin) != origins_.end();
  }
  return false;
}

bool CorsPolicy::may_post(const HttpHead& head) const {
  const std::string_view origin = head.header("Origin");
  if (origin.empty() || allows(origin)) return true;
  const size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && origin.substr(scheme + 3) == head.header("Host");
}

std::vector<HttpHeader> CorsPolicy::headers(const HttpHead& head) const {
  const std::string_view origin = head.header("Origin");
  if (origin.empty() || !allows(origin)) return {};
  const std::string shown = mode_ == Mode::kAny ? "*" : std::string(origin);
  return {{"Access-Control-Allow-Origin", shown},
          {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After"},
          {"Vary", "Origin"}};
}

HttpReply CorsPolicy::preflight(const HttpHead& head, std::string_view allowed_methods) const {
  HttpReply reply;
  reply.status = 204;
  reply.headers.push_back({"Allow", std::string(allowed_methods)});
  const std::string_view origin = head.header("Origin");
  if (origin.empty()) return reply;
  if (!allows(origin)) {
    return error_reply({403, "invalid_request_error", "origin_not_allowed"},
                       "this origin may not use the API; see --cors-origins");
  }
  const std::string_view wanted = head.header("Access-Control-Request-Headers");
  reply.headers.push_back({"Access-Control-Allow-Methods", std::string(allowed_methods)});
  reply.headers.push_back({"Access-Control-Allow-Headers",
                           wanted.empty() ? "Authorization, Content-Type" : std::string(wanted)});
  reply.headers.push_back({"Access-Control-Max-Age", "600"});
  return reply;
}

}  // namespace winnow
