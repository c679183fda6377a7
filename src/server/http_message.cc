#include "server/http_message.h"

#include <algorithm>

#include "base/lower_case.h"

namespace winnow {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower_case(x) == lower_case(y); });
}

const HttpHeader* find_header(const HttpHead& head, std::string_view name) {
  for (const HttpHeader& header : head.headers) {
    if (same_name(header.name, name)) return &header;
  }
  return nullptr;
}

}  // namespace

std::string_view HttpHead::header(std::string_view name) const {
  const HttpHeader* found = find_header(*this, name);
  return found == nullptr ? std::string_view() : found->value;
}

bool HttpHead::has_header(std::string_view name) const {
  return find_header(*this, name) != nullptr;
}

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 507:
      return "Insufficient Storage";
    default:
      return "Internal Server Error";
  }
}

}  // namespace winnow
