#include "server/api_keys.h"

#include <algorithm>
#include <cstdint>

#include "base/lower_case.h"

namespace winnow {
namespace {

bool same_key(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differing = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    differing |= static_cast<unsigned>(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return differing == 0;
}

std::string tenant_name(std::string_view key) {
  uint64_t hash = 0xCBF29CE484222325U;  // FNV-1a
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  return "key-" + std::to_string(hash);
}

std::string_view shown_key(const HttpHead& head) {
  std::string_view authorization = head.header("Authorization");
  constexpr std::string_view kScheme = "bearer ";
  const bool bearer =
      authorization.size() >= kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), authorization.begin(),
                 [](char expected, char found) { return expected == lower_case(found); });
  if (!bearer) return head.header("x-api-key");
  authorization.remove_prefix(kScheme.size());
  const size_t begin = authorization.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : authorization.substr(begin);
}

}  // namespace

Result<ApiKeys> ApiKeys::create(std::vector<std::string> keys) {
  for (const std::string& key : keys) {
    const bool printable = std::all_of(key.begin(), key.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte > 0x20 && byte < 0x7F;
    });
    if (key.empty() || !printable) {
      return fail(ErrorCode::kInvalidArgument,
                  "API key: expected printable ASCII without blanks, found %zu bytes that are not",
                  key.size());
    }
  }
  ApiKeys result;
  result.keys_ = std::move(keys);
  return result;
}

std::optional<std::string> ApiKeys::tenant(const HttpHead& head) const {
  if (keys_.empty()) return "everybody";
  const std::string_view shown = shown_key(head);
  const std::string* found = nullptr;
  for (const std::string& key : keys_) {
    if (same_key(key, shown)) found = &key;
  }
  return found == nullptr ? std::nullopt : std::optional(tenant_name(*found));
}

}  // namespace winnow
