#include "server/stream_writer.h"

#include "server/error_map.h"
#include "server/sse.h"

namespace winnow {

namespace json = boost::json;

void UsageTotal::add_end(int32_t choice, const RequestEnd& end) {
  ended_.completion_tokens += end.generated_tokens;
  if (choice % choices_per_prompt_ != 0) return;
  ended_.prompt_tokens += end.prompt_tokens;
  ended_.cached_tokens += end.cached_tokens;
  usage_.cached_tokens += end.cached_tokens;
}

void StreamWriter::begin(Exchange& exchange) {
  exchange.begin(sse_head());
  exchange.send_when_silent(settings_.ping_interval_s, std::string(kSsePing));
}

void StreamWriter::on_progress(Exchange& exchange, int32_t /*choice*/,
                               const PrefillProgress& progress) {
  json::object news = chunk({});
  news["prompt_progress"] = progress_json(progress);
  send(exchange, std::move(news));
}

void StreamWriter::finish(Exchange& exchange) {
  if (settings_.include_usage) {
    json::object last = chunk({});
    last["usage"] = usage_json(usage_.ended());
    exchange.send(sse_event(last));
  }
  exchange.send(kSseDone);
  exchange.end();
}

void StreamWriter::fail(Exchange& exchange, const Error& error) {
  exchange.send(sse_event(error_body(error)));
  exchange.send(kSseDone);
  exchange.end();
}

json::object StreamWriter::chunk(json::array choices) const {
  json::object object;
  object["id"] = head_.id;
  object["object"] = object_;
  object["created"] = head_.created;
  object["model"] = head_.model;
  object["choices"] = std::move(choices);
  return object;
}

void StreamWriter::send(Exchange& exchange, json::object chunk) {
  if (settings_.continuous_usage) chunk["usage"] = usage_json(usage_.so_far());
  exchange.send(sse_event(chunk));
}

void StreamWriter::send_end(Exchange& exchange, json::object choice, const AnswerEnd& end,
                            std::string_view finish_reason) {
  choice["finish_reason"] = finish_reason;
  choice["stop_reason"] = stop_reason(end, tokenizer_);
  json::object last = chunk(one_element(std::move(choice)));
  last["timings"] = timings_json(end.end);
  send(exchange, std::move(last));
}

}  // namespace winnow
