// Links: server
// Any bytes as the head of a request: its end is found alike however the bytes arrive, and what
// passes the check has one length at most.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "server/cors.h"
#include "server/framing_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)winnow::CorsPolicy::parse(bytes);
  const auto end = winnow::find_head_end(bytes, 0);
  for (size_t scanned = 0; scanned <= size; scanned += 1 + size / 16) {
    // Bytes that were looked at before hold no end.
    if (winnow::find_head_end(bytes.substr(0, scanned), 0)) break;
    CHECK(winnow::find_head_end(bytes, scanned) == end);
  }
  if (!end) return 0;
  const std::string_view head = bytes.substr(0, *end);
  if (!winnow::check_framing(head).ok()) return 0;
  for (size_t pos = 0; pos < head.size(); ++pos) {
    if (head[pos] == '\n') CHECK(pos > 0 && head[pos - 1] == '\r');
  }
  CHECK(head.find('\0') == std::string_view::npos);
  return 0;
}
