// The one table of request fields: name, type, range, default. Every known field is checked against
// it before a request gets anywhere; what is unknown is ignored, and null counts as absent.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace winnow {

enum class FieldKind {
  kFlag,      // true or false
  kInteger,   // a whole number in [min, max]
  kNumber,    // a number in [min, max]
  kText,      // at most max bytes
  kTexts,     // a text, or a list of at most max texts
  kIntegers,  // a list of at most max whole numbers that fit TokenId and are not negative
  kObject,
  kList,      // of at most max elements
  kAnything,  // checked where it is read
};

enum Endpoint : unsigned { kChat = 1, kCompletions = 2, kResponses = 4, kTokenize = 8 };

struct FieldRule {
  std::string_view name;
  unsigned endpoints;  // that know it
  FieldKind kind;
  double min;
  double max;
  std::string_view default_text;  // for people
};

std::span<const FieldRule> field_rules();
bool is_request_field(std::string_view name);

// A JSON object: UTF-8, no byte-order mark, no lone surrogates, at most kMaxJsonDepth deep.
// kInvalidArgument naming the position.
inline constexpr int kMaxJsonDepth = 64;
Result<boost::json::object> parse_json_object(std::string_view body);

// kInvalidArgument naming the first known field that breaks its rule.
Status check_fields(const boost::json::object& request, Endpoint endpoint);

// Reads fields that check_fields has passed.
class RequestFields {
 public:
  // `request` must outlive this. Fields that `endpoint` does not know, and has not checked, are
  // absent.
  RequestFields(const boost::json::object& request, Endpoint endpoint)
      : request_(request), endpoint_(endpoint) {}
  // Of an object within a request: nothing was checked, so only find(), object() and list() may be
  // used.
  explicit RequestFields(const boost::json::object& request) : request_(request) {}

  // None if absent or null.
  const boost::json::value* find(std::string_view name) const;
  std::optional<bool> flag(std::string_view name) const;
  std::optional<int64_t> integer(std::string_view name) const;
  std::optional<float> number(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::vector<TokenId> integers(std::string_view name) const;
  const boost::json::object* object(std::string_view name) const;
  const boost::json::array* list(std::string_view name) const;

 private:
  const boost::json::object& request_;
  std::optional<Endpoint> endpoint_ = {};
};

// The whole number that `value` is, 1.0 included; none for anything else or beyond 64 bits.
std::optional<int64_t> whole_number(const boost::json::value& value);
// `value` as it may be shown in a message.
std::string shown_json(const boost::json::value& value);

}  // namespace winnow
