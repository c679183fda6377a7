#include "server/framing_check.h"

#include <algorithm>
#include <string>

#include "base/escape.h"
#include "base/lower_case.h"

namespace winnow {
namespace {

Error ambiguous(std::string_view what, std::string_view expected, std::string_view found) {
  return fail(ErrorCode::kInvalidArgument, "%s: expected %s, found '%s'", std::string(what).c_str(),
              std::string(expected).c_str(), escaped(found, 60).c_str());
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

bool is_length(std::string_view text) {
  constexpr size_t kMaxDigits = 19;
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Counts {
  int lengths = 0;
  int encodings = 0;
  int hosts = 0;
};

Status check_header(std::string_view line, Counts& counts) {
  if (line.front() == ' ' || line.front() == '\t') {
    return ambiguous("header", "no folded line", line);
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    return ambiguous("header", "NAME: VALUE", line);
  }
  const std::string_view name = line.substr(0, colon);
  if (name.find_first_of(" \t") != std::string_view::npos) {
    return ambiguous("header name", "no white space", name);
  }
  const std::string known = lower_case(name);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (known == "host") ++counts.hosts;
  if (known == "content-length") {
    ++counts.lengths;
    if (!is_length(value)) return ambiguous("Content-Length", "a plain number", value);
  }
  if (known == "transfer-encoding") {
    ++counts.encodings;
    const std::string_view raw = line.substr(colon + 1);
    const bool plain = lower_case(value) == "chunked" && raw.size() <= value.size() + 1;
    if (!plain) return ambiguous("Transfer-Encoding", "chunked", raw);
  }
  return Ok{};
}

Status check_line(std::string_view line) {
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\t') || byte == 0x7F) {
      return ambiguous("request head", "no control characters", line);
    }
  }
  return Ok{};
}

}  // namespace

std::optional<size_t> find_head_end(std::string_view bytes, size_t scanned) {
  // An end may have begun up to two bytes before.
  for (size_t pos = scanned < 2 ? 0 : scanned - 2;; ++pos) {
    pos = bytes.find('\n', pos);
    if (pos == std::string_view::npos) return std::nullopt;
    std::string_view rest = bytes.substr(pos + 1);
    const size_t cr = rest.starts_with('\r') ? 1 : 0;
    rest.remove_prefix(cr);
    if (rest.starts_with('\n')) return pos + 2 + cr;
  }
}

Status check_framing(std::string_view head) {
  Counts counts;
  bool request_line = true;
  bool http_1_1 = false;
  while (!head.empty()) {
    const size_t end = head.find('\n');
    if (end == std::string_view::npos || end == 0 || head[end - 1] != '\r') {
      return ambiguous("request head", "lines that end with CR LF",
                       head.substr(0, std::min(end, head.size())));
    }
    const std::string_view line = head.substr(0, end - 1);
    head.remove_prefix(end + 1);
    if (line.empty()) {
      if (!head.empty() || request_line) return ambiguous("request head", "one empty line", head);
      break;
    }
    TRY_STATUS(check_line(line));
    if (request_line) {
      http_1_1 = line.ends_with("HTTP/1.1");
    } else {
      TRY_STATUS(check_header(line, counts));
    }
    request_line = false;
  }
  if (counts.lengths > 1) {
    return ambiguous("Content-Length", "one", std::to_string(counts.lengths) + " of them");
  }
  if (counts.encodings > 1) {
    return ambiguous("Transfer-Encoding", "one", std::to_string(counts.encodings) + " of them");
  }
  if (counts.lengths > 0 && counts.encodings > 0) {
    return ambiguous("request", "a Content-Length or a Transfer-Encoding", "both");
  }
  if (counts.encodings > 0 && !http_1_1) {
    return ambiguous("Transfer-Encoding", "HTTP/1.1", "an older version");
  }
  if (counts.hosts > 1 || (http_1_1 && counts.hosts == 0)) {
    return ambiguous("Host", "one", std::to_string(counts.hosts) + " of them");
  }
  return Ok{};
}

}  // namespace winnow
