// JSON as the program prints it: always valid UTF-8, one line.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace winnow {

// `bytes` as a JSON string; what is not UTF-8 becomes U+FFFD.
boost::json::string json_text(std::string_view bytes);
boost::json::array json_ids(std::span<const TokenId> ids);
std::string json_line(const boost::json::value& value);

// The token ids under `key` of a JSON object. kInvalidArgument naming `name`, the place, and what
// was found; ids must lie in [0, vocab_size).
Result<std::vector<TokenId>> ids_from_json(std::string_view text, std::string_view key,
                                           int32_t vocab_size, const std::string& name);
// The same of an object that is already parsed.
Result<std::vector<TokenId>> ids_from_object(const boost::json::object& object,
                                             std::string_view key, int32_t vocab_size,
                                             const std::string& name);

}  // namespace winnow
