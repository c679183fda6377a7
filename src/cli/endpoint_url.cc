#include "cli/endpoint_url.h"

#include <algorithm>
#include <charconv>

#include "base/escape.h"

namespace winnow {
namespace {

bool is_plain(char c) { return c > ' ' && c < 0x7F; }

// The port in `text`, all of it; 0 if there is none.
uint16_t port_in(std::string_view text) {
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, port);
  return error == std::errc() && stopped == end ? port : uint16_t{0};
}

// Where the host in "HOST[:PORT]" or "[HOST][:PORT]" ends, brackets included.
size_t host_end(std::string_view authority) {
  if (!authority.starts_with('[')) return std::min(authority.find(':'), authority.size());
  const size_t bracket = authority.find(']');
  return bracket == std::string_view::npos ? 0 : bracket + 1;
}

std::string root_of(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

}  // namespace

std::string EndpointUrl::authority() const {
  const bool v6 = host.find(':') != std::string::npos;
  return (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string EndpointUrl::text() const { return "http://" + authority() + root; }

Result<EndpointUrl> parse_endpoint_url(std::string_view text, const std::string& name) {
  const auto refused = [&](const char* expected) {
    return fail(ErrorCode::kInvalidArgument, "%s: expected %s, found '%s'", name.c_str(), expected,
                escaped(text, 80).c_str());
  };
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = text;
  if (rest.starts_with("https://")) return refused("http://, as TLS is not spoken here");
  if (rest.starts_with(kScheme)) rest.remove_prefix(kScheme.size());
  if (rest.find("://") != std::string_view::npos) return refused("http://HOST[:PORT][/PATH]");
  if (!std::all_of(rest.begin(), rest.end(), is_plain)) return refused("no blanks or other signs");
  if (rest.find_first_of("?#@") != std::string_view::npos) {
    return refused("no user, query or fragment");
  }
  const size_t path = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, path);
  EndpointUrl url;
  url.root = root_of(rest.substr(path));
  const size_t end = host_end(authority);
  std::string_view host = authority.substr(0, end);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return refused("a host");
  url.host = std::string(host);
  const std::string_view port = authority.substr(end);
  if (port.empty()) return url;
  url.port = port.starts_with(':') ? port_in(port.substr(1)) : uint16_t{0};
  if (url.port == 0) return refused("a port from 1 to 65535");
  return url;
}

}  // namespace winnow
