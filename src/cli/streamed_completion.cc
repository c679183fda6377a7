#include "cli/streamed_completion.h"

#include <boost/json/parse.hpp>

#include "base/escape.h"
#include "cli/http_calls.h"

namespace winnow {
namespace {

namespace json = boost::json;

constexpr size_t kMaxErrorBytes = 65536;
constexpr size_t kMaxLineBytes = size_t{1} << 24;
constexpr size_t kMaxShownBytes = 300;

std::optional<int64_t> count_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  json::error_code error;
  const auto number = value->to_number<int64_t>(error);
  if (error || number < 0) return std::nullopt;
  return number;
}

const json::object* object_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

std::string text_in(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

// The message of {"error": {"message"}} or {"error": "..."}; empty if there is none.
std::string error_in(const json::object& object) {
  if (const json::object* error = object_in(object, "error")) return text_in(*error, "message");
  return text_in(object, "error");
}

// A chunk that only tells why the answer ended carries no token.
bool carries_token(const json::object& choice) {
  const json::value* reason = choice.if_contains("finish_reason");
  return reason == nullptr || reason->is_null() || !text_in(choice, "text").empty();
}

}  // namespace

std::string http_error_message(std::string_view body) {
  json::error_code error;
  const json::value value = json::parse(body, error);
  if (!error && value.is_object()) {
    if (const std::string message = error_in(value.get_object()); !message.empty()) {
      return escaped(message, kMaxShownBytes);
    }
  }
  return body.empty() ? "no reason given" : escaped(body, kMaxShownBytes);
}

StreamedCompletion::StreamedCompletion(int64_t asked_prompt_tokens, double sent_s)
    : record_{.asked_prompt_tokens = asked_prompt_tokens, .sent_s = sent_s} {}

void StreamedCompletion::fail_once(std::string kind, std::string message) {
  if (!record_.failure) record_.failure = {std::move(kind), std::move(message)};
}

void StreamedCompletion::on_body(std::string_view bytes, double now_s) {
  if (status_ != kHttpOk) {
    rest_ += bytes.substr(0, kMaxErrorBytes - std::min(kMaxErrorBytes, rest_.size()));
    return;
  }
  rest_ += bytes;
  size_t begin = 0;
  for (size_t end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
    std::string_view line(rest_.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    read_line(line, now_s);
    begin = end + 1;
  }
  rest_.erase(0, begin);
  if (rest_.size() <= kMaxLineBytes) return;
  fail_once("stream", "expected lines of at most 16 MiB, found a longer one");
  rest_.clear();
}

void StreamedCompletion::read_line(std::string_view line, double now_s) {
  constexpr std::string_view kData = "data:";
  if (!line.starts_with(kData)) return;
  line.remove_prefix(kData.size());
  if (line.starts_with(' ')) line.remove_prefix(1);
  if (line == "[DONE]") {
    finished_ = true;
    return;
  }
  json::error_code error;
  const json::value value = json::parse(line, error);
  if (error || !value.is_object()) {
    fail_once("stream", "expected events with a JSON object, found '" + escaped(line, 80) + "'");
    return;
  }
  read_chunk(value.get_object(), now_s);
}

void StreamedCompletion::read_chunk(const json::object& chunk, double now_s) {
  if (const std::string message = error_in(chunk); !message.empty()) {
    fail_once("stream", escaped(message, kMaxShownBytes));
  }
  if (const json::object* usage = object_in(chunk, "usage")) read_usage(*usage);
  const json::value* choices = chunk.if_contains("choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return;
  const json::object* choice = choices->get_array().front().if_object();
  if (choice == nullptr) return;
  if (carries_token(*choice) || record_.chunk_s.empty()) record_.chunk_s.push_back(now_s);
  if (!text_in(*choice, "finish_reason").empty()) finished_ = true;
}

void StreamedCompletion::read_usage(const json::object& usage) {
  record_.prompt_tokens = count_in(usage, "prompt_tokens");
  record_.completion_tokens = count_in(usage, "completion_tokens");
  if (const json::object* details = object_in(usage, "prompt_tokens_details")) {
    record_.cached_tokens = count_in(*details, "cached_tokens");
  }
}

void StreamedCompletion::on_end(const std::optional<RequestFailure>& failure, double now_s) {
  record_.ended_s = now_s;
  if (status_ != 0 && status_ != kHttpOk) {
    fail_once("HTTP " + std::to_string(status_), http_error_message(rest_));
  }
  if (failure) fail_once(failure->kind, failure->message);
  if (record_.failure) return;
  if (record_.chunk_s.empty()) {
    fail_once("stream", "expected a stream of chunks, found '" + escaped(rest_, 80) + "'");
  } else if (!finished_) {
    fail_once("cut off", "expected a finish reason, found the end of the stream after " +
                             std::to_string(num_chunks()) + " chunks");
  }
}

}  // namespace winnow
