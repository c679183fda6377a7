// StreamedCompletion: reads the answer to one streamed /v1/completions request as it arrives, and
// keeps when each token came.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "cli/request_record.h"

namespace winnow {

class StreamedCompletion {
 public:
  StreamedCompletion(int64_t asked_prompt_tokens, double sent_s);

  // In the order in which they come over the network; `now_s` on the run's clock.
  void on_head(int status) { status_ = status; }
  void on_body(std::string_view bytes, double now_s);
  // `failure` is the connection's own.
  void on_end(const std::optional<RequestFailure>& failure, double now_s);

  const RequestRecord& record() const { return record_; }
  int64_t num_chunks() const { return static_cast<int64_t>(record_.chunk_s.size()); }

 private:
  void read_line(std::string_view line, double now_s);
  void read_chunk(const boost::json::object& chunk, double now_s);
  void read_usage(const boost::json::object& usage);
  void fail_once(std::string kind, std::string message);

  RequestRecord record_;
  int status_ = 0;
  bool finished_ = false;  // a finish reason or [DONE] came
  std::string rest_;       // of the body: an unfinished line; all of it where it is no stream
};

// What the body of an HTTP error says: the message of an OpenAI error object, or the body itself.
std::string http_error_message(std::string_view body);

}  // namespace winnow
