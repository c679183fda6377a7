// HostPolicy: under which names the server may be asked. A page of another site can make a browser
// believe that its name stands for this machine (DNS rebinding); the Host of its requests tells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http_message.h"

namespace winnow {

class HostPolicy {
 public:
  // Any name.
  HostPolicy() = default;
  // The names of this machine, localhost, 127.0.0.1 and [::1], that of `bound_host`, and
  // `more_hosts`: names without ports, separated by commas, or "*" for any. kInvalidArgument for
  // what is no name.
  static Result<HostPolicy> local(std::string_view bound_host, std::string_view more_hosts);

  // A request without Host comes from no browser.
  bool allows(const HttpHead& head) const;

 private:
  std::vector<std::string> hosts_;  // in lower case; none = any
};

}  // namespace winnow
