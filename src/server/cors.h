// CorsPolicy: which web pages may use the API from a browser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http_message.h"

namespace winnow {

class CorsPolicy {
 public:
  // "localhost" (pages of this machine), "none", "*", or origins separated by commas.
  // kInvalidArgument for an origin that is not "scheme://host[:port]".
  static Result<CorsPolicy> parse(std::string_view text);
  // Pages of this machine.
  CorsPolicy() = default;

  bool allows(std::string_view origin) const;
  // A page of another origin could ask without reading the answer; that keeps the engine busy too.
  // Pages of the server itself and clients that are no pages may always ask.
  bool may_post(const HttpHead& head) const;
  // What goes with every answer to a page that is allowed; nothing for others. Credentials are
  // never allowed.
  std::vector<HttpHeader> headers(const HttpHead& head) const;
  // The answer to OPTIONS on a route with these methods.
  HttpReply preflight(const HttpHead& head, std::string_view allowed_methods) const;

 private:
  enum class Mode { kLocal, kNone, kAny, kList };
  Mode mode_ = Mode::kLocal;
  std::vector<std::string> origins_;
};

}  // namespace winnow
