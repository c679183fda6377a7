#include "cli/json_output.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/escape.h"
#include "base/utf8.h"

namespace winnow {
namespace {

Error no_ids(std::string_view found, std::string_view key, const std::string& name) {
  return fail(ErrorCode::kInvalidArgument,
              "%s: expected an object with an array of token ids under \"%s\", found '%s'",
              escaped(name).c_str(), std::string(key).c_str(), escaped(found, 60).c_str());
}

}  // namespace

boost::json::string json_text(std::string_view bytes) {
  return boost::json::string(valid_utf8(bytes));
}

boost::json::array json_ids(std::span<const TokenId> ids) {
  return boost::json::array(ids.begin(), ids.end());
}

std::string json_line(const boost::json::value& value) {
  return boost::json::serialize(value) + "\n";
}

Result<std::vector<TokenId>> ids_from_json(std::string_view text, std::string_view key,
                                           int32_t vocab_size, const std::string& name) {
  const std::string shown_name = escaped(name);
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(text, error);
  if (error) {
    return fail(ErrorCode::kInvalidArgument, "%s: expected JSON, found '%s' (%s)",
                shown_name.c_str(), escaped(text, 60).c_str(), error.message().c_str());
  }
  const boost::json::object* object = value.if_object();
  if (object == nullptr) return no_ids(text, key, name);
  return ids_from_object(*object, key, vocab_size, name);
}

Result<std::vector<TokenId>> ids_from_object(const boost::json::object& object,
                                             std::string_view key, int32_t vocab_size,
                                             const std::string& name) {
  const boost::json::value* found = object.if_contains(key);
  const boost::json::array* array = found == nullptr ? nullptr : found->if_array();
  if (array == nullptr) return no_ids(boost::json::serialize(object), key, name);
  const std::string shown_name = escaped(name);
  std::vector<TokenId> ids;
  ids.reserve(array->size());
  for (const boost::json::value& element : *array) {
    const int64_t* id = element.if_int64();
    if (id == nullptr || *id < 0 || *id >= vocab_size) {
      return fail(ErrorCode::kInvalidArgument,
                  "%s: expected token ids from 0 to %d under \"%s\", found %s at index %zu",
                  shown_name.c_str(), vocab_size - 1, std::string(key).c_str(),
                  escaped(boost::json::serialize(element), 60).c_str(), ids.size());
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

}  // namespace winnow
