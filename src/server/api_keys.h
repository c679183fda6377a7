// ApiKeys: who may ask. Without keys everybody may.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/http_message.h"

namespace winnow {

class ApiKeys {
 public:
  // kInvalidArgument for a key that is empty, or has blanks or control characters.
  static Result<ApiKeys> create(std::vector<std::string> keys);
  ApiKeys() = default;

  bool empty() const { return keys_.empty(); }
  // Whose request this is: a name that differs between keys and tells nothing of them. None if it
  // shows no valid key, as "Authorization: Bearer KEY" or "x-api-key: KEY". Takes as long for every
  // wrong key of a length.
  std::optional<std::string> tenant(const HttpHead& head) const;

 private:
  std::vector<std::string> keys_;
};

}  // namespace winnow
