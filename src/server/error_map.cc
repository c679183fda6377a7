#include "server/error_map.h"

#include <boost/json/serialize.hpp>

#include "base/utf8.h"
#include "server/request_fields.h"

namespace winnow {
namespace {

namespace json = boost::json;

constexpr std::string_view kInvalidRequest = "invalid_request_error";
constexpr std::string_view kContextExceededCode = "context_length_exceeded";

json::value text_or_null(std::string_view text) {
  return text.empty() ? json::value() : json::value(text);
}

// House messages begin with the thing they are about, then ':', '[' or '.'.
std::string_view field_in(std::string_view message) {
  const std::string_view name = message.substr(0, message.find_first_of(":[. "));
  return is_request_field(name) ? name : std::string_view();
}

json::object body(const ErrorForm& form, std::string_view message, std::string_view param) {
  json::object error;
  error["message"] = valid_utf8(message);
  error["type"] = form.type;
  error["param"] = text_or_null(param);
  error["code"] = text_or_null(form.code);
  return {{"error", std::move(error)}};
}

HttpReply as_reply(const ErrorForm& form, const json::object& body) {
  HttpReply reply;
  reply.status = form.status;
  reply.body = json::serialize(body);
  if (form.status == 429 || form.status == 503) reply.headers.push_back({"Retry-After", "1"});
  // The same request would run for as long again and fail again.
  if (form.status == 500) reply.headers.push_back({"x-should-retry", "false"});
  if (form.status == 401) reply.headers.push_back({"WWW-Authenticate", "Bearer"});
  return reply;
}

}  // namespace

ErrorForm error_form(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kUnsupported:
      return {400, kInvalidRequest};
    case ErrorCode::kContextExceeded:
      return {400, kInvalidRequest, kContextExceededCode};
    case ErrorCode::kNotFound:  // what a request can name is a model
      return {404, "not_found_error", "model_not_found"};
    case ErrorCode::kOverloaded:
      return {429, "rate_limit_error", "queue_full"};
    case ErrorCode::kShuttingDown:
      return {503, "unavailable_error", "shutting_down"};
    case ErrorCode::kInterrupted:
      return {503, "unavailable_error", "cancelled"};
    case ErrorCode::kOutOfMemory:
      return {500, "server_error", "out_of_memory"};
    case ErrorCode::kStorageFull:
      return {507, "server_error", "storage_full"};
    case ErrorCode::kNumerical:
      return {500, "server_error", "numerical"};
    case ErrorCode::kCorruptFile:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return {};
  }
  return {};
}

ErrorForm error_form(int status) {
  switch (status) {
    case 401:
      return {401, "authentication_error", "invalid_api_key"};
    case 404:
      return {404, "not_found_error"};
    case 500:
      return {};
    case 503:
      return {503, "unavailable_error", "shutting_down"};
    default:
      return {status, kInvalidRequest};
  }
}

json::object error_body(const Error& error) {
  return body(error_form(error.code), error.message, field_in(error.message));
}

json::object error_body(const ErrorForm& form, std::string_view message) {
  return body(form, message, {});
}

HttpReply error_reply(const Error& error) {
  return as_reply(error_form(error.code), error_body(error));
}

HttpReply error_reply(const ErrorForm& form, std::string_view message) {
  return as_reply(form, error_body(form, message));
}

HttpReply context_exceeded_reply(const Error& error, int64_t prompt_tokens,
                                 int64_t context_tokens) {
  json::object whole = error_body(error);
  json::object& inner = whole["error"].as_object();
  inner["n_prompt_tokens"] = prompt_tokens;
  inner["n_ctx"] = context_tokens;
  return as_reply(error_form(error.code), whole);
}

}  // namespace winnow
