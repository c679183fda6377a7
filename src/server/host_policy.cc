#include "server/host_policy.h"

#include <algorithm>

#include "base/escape.h"
#include "base/lower_case.h"

namespace winnow {
namespace {

// The name in a Host header, or in a flag, in lower case: no port, no dot at the end.
std::string name_of(std::string_view host) {
  const size_t port =
      host.find(':', host.starts_with('[') ? std::min(host.find(']'), host.size()) : 0);
  host = host.substr(0, port);
  if (host.ends_with('.')) host.remove_suffix(1);
  return lower_case(host);
}

bool is_name(std::string_view host) {
  constexpr std::string_view kOthers = "/?#@, \t";
  if (host.empty() || host.find_first_of(kOthers) != std::string_view::npos) return false;
  return host.starts_with('[') ? host.ends_with(']') : host.find(':') == std::string_view::npos;
}

}  // namespace

Result<HostPolicy> HostPolicy::local(std::string_view bound_host, std::string_view more_hosts) {
  HostPolicy policy;
  if (more_hosts == "*") return policy;
  const bool is_v6 = bound_host.find(':') != std::string_view::npos;
  policy.hosts_ = {"localhost", "127.0.0.1", "[::1]",
                   name_of(is_v6 ? "[" + std::string(bound_host) + "]" : std::string(bound_host))};
  while (!more_hosts.empty()) {
    const size_t comma = std::min(more_hosts.find(','), more_hosts.size());
    const std::string_view host = more_hosts.substr(0, comma);
    if (!is_name(host)) {
      return fail(ErrorCode::kInvalidArgument,
                  "host: expected * or names without ports, separated by commas, found '%s'",
                  escaped(host, 80).c_str());
    }
    policy.hosts_.push_back(name_of(host));
    more_hosts.remove_prefix(std::min(comma + 1, more_hosts.size()));
  }
  return policy;
}

bool HostPolicy::allows(const HttpHead& head) const {
  const std::string_view host = head.header("Host");
  return hosts_.empty() || host.empty() ||
         std::find(hosts_.begin(), hosts_.end(), name_of(host)) != hosts_.end();
}

}  // namespace winnow
