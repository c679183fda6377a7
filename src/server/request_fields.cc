#include "server/request_fields.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <cmath>
#include <limits>

#include "base/escape.h"

namespace winnow {
namespace {

namespace json = boost::json;
using enum FieldKind;

constexpr unsigned kBoth = kChat | kCompletions;
constexpr unsigned kAll = kBoth | kResponses;
constexpr double kMaxInteger = 9223372036854775807.0;
constexpr double kMinInteger = -9223372036854775808.0;
constexpr double kMaxToken = 2147483647;
constexpr double kLeastPenalty = std::numeric_limits<float>::min();
constexpr double kMaxName = 1024;

constexpr FieldRule kRules[] = {
    {"model", kAll | kTokenize, kText, 0, kMaxName, "the served model"},
    {"messages", kChat | kTokenize, kList, 0, 1e5, "required"},
    {"prompt", kCompletions | kTokenize, kAnything, 0, 0, "required"},
    {"input", kResponses, kAnything, 0, 0, "required"},
    {"instructions", kResponses, kText, 0, 1e9, "none"},
    {"stream", kAll, kFlag, 0, 1, "false"},
    {"stream_options", kBoth, kObject, 0, 0, "none"},
    {"max_tokens", kBoth, kInteger, 0, kMaxInteger, "to the end of the context"},
    {"max_completion_tokens", kChat, kInteger, 0, kMaxInteger, "max_tokens"},
    {"max_output_tokens", kResponses, kInteger, 0, kMaxInteger, "to the end of the context"},
    {"min_tokens", kAll, kInteger, 0, kMaxInteger, "0"},
    {"temperature", kAll, kNumber, 0, 100, "1"},
    {"top_k", kAll, kInteger, -1, kMaxToken, "-1"},
    {"top_p", kAll, kNumber, 0, 1, "1"},
    {"min_p", kAll, kNumber, 0, 1, "0"},
    {"repetition_penalty", kAll, kNumber, kLeastPenalty, 100, "1"},
    {"presence_penalty", kAll, kNumber, -100, 100, "0"},
    {"frequency_penalty", kAll, kNumber, -100, 100, "0"},
    {"logit_bias", kBoth, kObject, 0, 0, "none"},
    {"seed", kAll, kInteger, kMinInteger, kMaxInteger, "random"},
    {"n", kBoth, kInteger, 1, 16, "1"},
    {"best_of", kCompletions, kInteger, 1, 16, "n"},
    {"stop", kBoth, kTexts, 0, 64, "none"},
    {"stop_token_ids", kAll, kIntegers, 0, 1024, "none"},
    {"ignore_eos", kAll, kFlag, 0, 1, "false"},
    {"include_stop_str_in_output", kBoth, kFlag, 0, 1, "false"},
    {"logprobs", kBoth, kAnything, 0, 20, "off"},
    {"top_logprobs", kChat | kResponses, kInteger, 0, 20, "0"},
    {"prompt_logprobs", kBoth, kInteger, 0, 20, "off"},
    {"echo", kCompletions, kFlag, 0, 1, "false"},
    {"suffix", kCompletions, kText, 0, 1e9, "none"},
    {"truncate_prompt_tokens", kAll, kInteger, -1, kMaxInteger, "none"},
    {"add_special_tokens", kCompletions | kTokenize, kFlag, 0, 1, "true"},
    {"return_token_ids", kBoth, kFlag, 0, 1, "false"},
    {"return_progress", kBoth, kFlag, 0, 1, "false"},
    {"timings_per_token", kBoth, kFlag, 0, 1, "false"},
    {"record_map", kChat, kFlag, 0, 1, "false"},
    {"sse_ping_interval", kAll, kNumber, 0.1, 3600, "15"},
    {"add_generation_prompt", kChat | kTokenize, kFlag, 0, 1, "true"},
    {"continue_final_message", kChat | kTokenize, kFlag, 0, 1, "false"},
    {"chat_template_kwargs", kChat | kTokenize, kObject, 0, 0, "none"},
    {"chat_template", kChat | kTokenize, kText, 0, 1e9, "refused"},
    {"tools", kChat | kResponses | kTokenize, kList, 0, 1024, "none"},
    {"tool_choice", kChat | kResponses, kAnything, 0, 0, "auto"},
    {"parallel_tool_calls", kChat | kResponses, kFlag, 0, 1, "true"},
    {"response_format", kBoth, kObject, 0, 0, "text"},
    {"text", kResponses, kObject, 0, 0, "text"},
    {"grammar", kBoth, kText, 0, 1e9, "none"},
    {"json_schema", kBoth, kObject, 0, 0, "none"},
    {"attention", kAll, kText, 0, 16, "the server's"},
    {"cache_prompt", kAll, kFlag, 0, 1, "true"},
    {"cache_salt", kAll, kText, 0, 4096, "none"},
    {"user", kAll, kText, 0, 4096, "none"},
    {"request_id", kAll, kText, 0, 256, "none"},
    {"previous_response_id", kResponses, kText, 0, kMaxName, "refused"},
    {"content", kTokenize, kText, 0, 1e9, "none"},
    {"add_special", kTokenize, kFlag, 0, 1, "false"},
    {"parse_special", kTokenize, kFlag, 0, 1, "true"},
    {"return_token_strs", kTokenize, kFlag, 0, 1, "false"},
    {"with_pieces", kTokenize, kFlag, 0, 1, "false"},
    {"tokens", kTokenize, kIntegers, 0, 1e7, "required"},
};

bool knows(Endpoint endpoint, std::string_view name) {
  return std::any_of(std::begin(kRules), std::end(kRules), [&](const FieldRule& rule) {
    return rule.name == name && (rule.endpoints & endpoint) != 0;
  });
}

std::string number_text(double value) {
  char text[32];
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  std::snprintf(text, sizeof(text), whole ? "%.0f" : "%g", value);
  if (value >= kMaxInteger) return "9223372036854775807";
  if (value <= kMinInteger) return "-9223372036854775808";
  return text;
}

std::string expected(const FieldRule& rule) {
  const std::string range = number_text(rule.min) + " to " + number_text(rule.max);
  switch (rule.kind) {
    case kFlag:
      return "true or false";
    case kInteger:
      return "a whole number from " + range;
    case kNumber:
      return "a number from " + range;
    case kText:
      return "a string of at most " + number_text(rule.max) + " bytes";
    case kTexts:
      return "a string, or a list of at most " + number_text(rule.max) + " strings";
    case kIntegers:
      return "a list of at most " + number_text(rule.max) + " token ids";
    case kObject:
      return "an object";
    case kList:
      return "a list of at most " + number_text(rule.max) + " elements";
    case kAnything:
      break;
  }
  return "a value";
}

bool are_texts(const json::array& list) {
  return std::all_of(list.begin(), list.end(), [](const json::value& v) { return v.is_string(); });
}

bool are_token_ids(const json::array& list) {
  return std::all_of(list.begin(), list.end(), [](const json::value& v) {
    const std::optional<int64_t> id = whole_number(v);
    return id && *id >= 0 && *id <= std::numeric_limits<TokenId>::max();
  });
}

bool passes(const FieldRule& rule, const json::value& value) {
  const auto within = [&rule](double x) { return x >= rule.min && x <= rule.max; };
  const auto short_enough = [&rule](size_t size) { return static_cast<double>(size) <= rule.max; };
  switch (rule.kind) {
    case kFlag:
      return value.is_bool();
    case kInteger: {
      const std::optional<int64_t> number = whole_number(value);
      return number && within(static_cast<double>(*number));
    }
    case kNumber:
      return value.is_number() && within(value.to_number<double>());
    case kText:
      return value.is_string() && short_enough(value.get_string().size());
    case kTexts:
      return value.is_string() || (value.is_array() && short_enough(value.get_array().size()) &&
                                   are_texts(value.get_array()));
    case kIntegers:
      return value.is_array() && short_enough(value.get_array().size()) &&
             are_token_ids(value.get_array());
    case kObject:
      return value.is_object();
    case kList:
      return value.is_array() && short_enough(value.get_array().size());
    case kAnything:
      return true;
  }
  return false;
}

}  // namespace

std::span<const FieldRule> field_rules() { return kRules; }

bool is_request_field(std::string_view name) {
  return std::any_of(std::begin(kRules), std::end(kRules),
                     [&](const FieldRule& rule) { return rule.name == name; });
}

Result<json::object> parse_json_object(std::string_view body) {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::stream_parser parser({}, options);
  json::error_code error;
  const size_t used = parser.write(body.data(), body.size(), error);
  if (!error) parser.finish(error);
  if (error) {
    return fail(ErrorCode::kInvalidArgument,
                "body: expected JSON in UTF-8, at most %d deep, found %s at byte %zu",
                kMaxJsonDepth, error.message().c_str(), used);
  }
  json::value value = parser.release();
  if (!value.is_object()) {
    return fail(ErrorCode::kInvalidArgument, "body: expected a JSON object, found %s",
                shown_json(value).c_str());
  }
  return std::move(value.get_object());
}

Status check_fields(const json::object& request, Endpoint endpoint) {
  for (const FieldRule& rule : kRules) {
    if ((rule.endpoints & endpoint) == 0) continue;
    const json::value* value = request.if_contains(rule.name);
    if (value == nullptr || value->is_null() || passes(rule, *value)) continue;
    return fail(ErrorCode::kInvalidArgument, "%s: expected %s, found %s",
                std::string(rule.name).c_str(), expected(rule).c_str(), shown_json(*value).c_str());
  }
  return Ok{};
}

const json::value* RequestFields::find(std::string_view name) const {
  const json::value* value = request_.if_contains(name);
  if (value == nullptr || value->is_null()) return nullptr;
  return endpoint_ && !knows(*endpoint_, name) ? nullptr : value;
}

std::optional<bool> RequestFields::flag(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(value->as_bool());
}

std::optional<int64_t> RequestFields::integer(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt : whole_number(*value);
}

std::optional<float> RequestFields::number(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt
                          : std::optional(static_cast<float>(value->to_number<double>()));
}

std::optional<std::string> RequestFields::text(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? std::nullopt : std::optional(std::string(value->as_string()));
}

std::vector<std::string> RequestFields::texts(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {std::string(value->get_string())};
  std::vector<std::string> texts;
  for (const json::value& text : value->as_array()) texts.emplace_back(text.as_string());
  return texts;
}

std::vector<TokenId> RequestFields::integers(std::string_view name) const {
  const json::array* values = list(name);
  std::vector<TokenId> ids;
  if (values == nullptr) return ids;
  for (const json::value& id : *values) ids.push_back(static_cast<TokenId>(*whole_number(id)));
  return ids;
}

const json::object* RequestFields::object(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? nullptr : value->if_object();
}

const json::array* RequestFields::list(std::string_view name) const {
  const json::value* value = find(name);
  return value == nullptr ? nullptr : value->if_array();
}

std::optional<int64_t> whole_number(const json::value& value) {
  if (const int64_t* number = value.if_int64()) return *number;
  const double* number = value.if_double();
  constexpr double kMaxExact = 9007199254740992.0;
  if (number == nullptr || *number != std::floor(*number) || std::abs(*number) > kMaxExact) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

std::string shown_json(const json::value& value) {
  constexpr size_t kMaxShown = 60;
  if (value.is_string()) {
    return "'" + escaped({value.get_string().data(), value.get_string().size()}, kMaxShown) + "'";
  }
  if (value.is_array()) {
    return "a list of " + std::to_string(value.get_array().size()) + " elements";
  }
  if (value.is_object()) return "an object";
  return json::serialize(value);
}

}  // namespace winnow
