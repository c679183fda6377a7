#include "server/response_answer.h"

#include <boost/json/serialize.hpp>
#include <optional>

#include "server/error_map.h"
#include "server/sse.h"

namespace winnow {
namespace {

namespace json = boost::json;

json::object usage_of(const RequestEnd& end) {
  return {
      {"input_tokens", end.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", end.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", end.generated_tokens},
      {"output_tokens_details", {{"reasoning_tokens", 0}}},
      {"total_tokens", end.prompt_tokens + end.generated_tokens}};
}

// What of the request the answer repeats.
json::object echoed(const json::object& request) {
  json::object echo;
  for (const char* name : {"instructions", "max_output_tokens", "temperature", "top_p", "user"}) {
    const json::value* value = request.if_contains(name);
    echo[name] = value == nullptr ? json::value() : *value;
  }
  const auto or_else = [&request](const char* name, json::value fallback) {
    const json::value* value = request.if_contains(name);
    return value == nullptr || value->is_null() ? fallback : *value;
  };
  echo["metadata"] = or_else("metadata", json::object());
  echo["parallel_tool_calls"] = or_else("parallel_tool_calls", true);
  echo["tool_choice"] = or_else("tool_choice", "auto");
  echo["tools"] = or_else("tools", json::array());
  echo["previous_response_id"] = nullptr;
  echo["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  echo["store"] = false;
  echo["text"] = or_else("text", {{"format", {{"type", "text"}}}});
  echo["truncation"] = "disabled";
  return echo;
}

class ResponseWriter final : public AnswerWriter {
 public:
  ResponseWriter(AnswerHead head, const ChatRequest& chat, const AnswerShape& shape,
                 const json::object& request, const AnswerParserFactory& parsers)
      : head_(std::move(head)),
        stream_(chat.settings.stream),
        ping_interval_s_(chat.settings.ping_interval_s),
        echoed_(echoed(request)),
        parser_(parsers(parser_options(shape))) {}

  void begin(Exchange& exchange) override {
    if (!stream_) return;
    exchange.begin(sse_head());
    exchange.send_when_silent(ping_interval_s_, std::string(kSsePing));
    emit(exchange, "response.created", {{"response", response("in_progress")}});
    emit(exchange, "response.in_progress", {{"response", response("in_progress")}});
  }

  void on_token(Exchange& exchange, int32_t /*choice*/, AnswerToken token) override {
    take(exchange, parser_->push(token.text));
  }

  void on_end(Exchange& exchange, int32_t /*choice*/, AnswerEnd end) override {
    end_ = end.end;
    take(exchange, parser_->push(end.text));
    take(exchange, parser_->finish());
    // An answer of no words is a message all the same.
    if (output_.empty() && !item_) open(exchange, Kind::kMessage, {});
    close(exchange);
  }

  void finish(Exchange& exchange) override {
    const bool whole = finish_reason(end_) != "length";
    json::object last = response(whole ? "completed" : "incomplete");
    if (!whole) last["incomplete_details"] = {{"reason", "max_output_tokens"}};
    last["usage"] = usage_of(end_);
    last["timings"] = timings_json(end_);
    if (!stream_) return exchange.reply({.body = json::serialize(last)});
    emit(exchange, whole ? "response.completed" : "response.incomplete",
         {{"response", std::move(last)}});
    exchange.end();
  }

  void fail(Exchange& exchange, const Error& error) override {
    if (!stream_) return exchange.reply(error_reply(error));
    json::object last = response("failed");
    const ErrorForm form = error_form(error.code);
    last["error"] = {{"code", form.code.empty() ? form.type : form.code},
                     {"message", error.message}};
    emit(exchange, "response.failed", {{"response", std::move(last)}});
    exchange.end();
  }

 private:
  enum class Kind { kReasoning, kMessage, kCall };
  // The item of the output that is being written.
  struct Item {
    Kind kind;
    int32_t call_idx = 0;
    std::string id;
    std::string call_id = {};
    std::string name = {};
    std::string text = {};  // or arguments
  };

  void emit(Exchange& exchange, std::string_view type, json::object data) {
    if (!stream_) return;
    json::object event;
    event["type"] = type;
    event["sequence_number"] = sequence_++;
    for (const auto& member : data) event[member.key()] = member.value();
    exchange.send(sse_named_event(type, event));
  }

  json::object response(std::string_view status) const {
    json::object object;
    object["id"] = head_.id;
    object["object"] = "response";
    object["created_at"] = head_.created;
    object["status"] = status;
    object["error"] = nullptr;
    object["incomplete_details"] = nullptr;
    object["model"] = head_.model;
    object["output"] = output_;
    for (const auto& member : echoed_) object[member.key()] = member.value();
    object["usage"] = nullptr;
    return object;
  }

  static json::object text_part(const Item& item) {
    if (item.kind == Kind::kReasoning) return {{"type", "reasoning_text"}, {"text", item.text}};
    return {{"type", "output_text"},
            {"text", item.text},
            {"annotations", json::array()},
            {"logprobs", json::array()}};
  }

  json::object item_json(const Item& item, bool done) const {
    json::object object;
    object["id"] = item.id;
    // `end_` is known when the last item is done.
    const bool whole = finish_reason(end_) != "length";
    object["status"] = !done ? "in_progress" : whole ? "completed" : "incomplete";
    json::array content;
    if (done && item.kind != Kind::kCall) content.push_back(text_part(item));
    switch (item.kind) {
      case Kind::kReasoning:
        object["type"] = "reasoning";
        object["summary"] = json::array();
        object["content"] = std::move(content);
        break;
      case Kind::kMessage:
        object["type"] = "message";
        object["role"] = "assistant";
        object["content"] = std::move(content);
        break;
      case Kind::kCall:
        object["type"] = "function_call";
        object["call_id"] = item.call_id;
        object["name"] = item.name;
        object["arguments"] = item.text;
        break;
    }
    return object;
  }

  // Where an event belongs; calls have no parts.
  json::object place() const {
    json::object place{{"item_id", item_->id}, {"output_index", output_.size()}};
    if (item_->kind != Kind::kCall) place["content_index"] = 0;
    return place;
  }

  void take(Exchange& exchange, const AnswerDelta& delta) {
    if (!delta.reasoning.empty()) {
      enter(exchange, Kind::kReasoning, {});
      add_text(exchange, "response.reasoning_text.delta", delta.reasoning);
    }
    if (!delta.content.empty()) {
      enter(exchange, Kind::kMessage, {});
      add_text(exchange, "response.output_text.delta", delta.content);
    }
    for (const ToolCallDelta& call : delta.tool_calls) {
      enter(exchange, Kind::kCall, call);
      if (call.arguments.empty()) continue;
      add_text(exchange, "response.function_call_arguments.delta", call.arguments);
    }
  }

  void add_text(Exchange& exchange, std::string_view event, const std::string& text) {
    item_->text += text;
    json::object data = place();
    data["delta"] = text;
    if (item_->kind == Kind::kMessage) data["logprobs"] = json::array();
    emit(exchange, event, std::move(data));
  }

  void enter(Exchange& exchange, Kind kind, const ToolCallDelta& call) {
    const bool same =
        item_ && item_->kind == kind && (kind != Kind::kCall || item_->call_idx == call.index);
    if (same) return;
    close(exchange);
    open(exchange, kind, call);
  }

  void open(Exchange& exchange, Kind kind, const ToolCallDelta& call) {
    static constexpr std::string_view kPrefixes[] = {"rs_", "msg_", "fc_"};
    item_ = Item{.kind = kind,
                 .call_idx = call.index,
                 .id = new_answer_id(kPrefixes[static_cast<size_t>(kind)]),
                 .call_id = call.id,
                 .name = call.name};
    emit(exchange, "response.output_item.added",
         {{"output_index", output_.size()}, {"item", item_json(*item_, false)}});
    if (kind == Kind::kCall) return;
    json::object data = place();
    data["part"] = text_part(*item_);
    emit(exchange, "response.content_part.added", std::move(data));
  }

  void close(Exchange& exchange) {
    if (!item_) return;
    json::object done = place();
    switch (item_->kind) {
      case Kind::kReasoning:
        done["text"] = item_->text;
        emit(exchange, "response.reasoning_text.done", std::move(done));
        break;
      case Kind::kMessage:
        done["text"] = item_->text;
        done["logprobs"] = json::array();
        emit(exchange, "response.output_text.done", std::move(done));
        break;
      case Kind::kCall:
        done["name"] = item_->name;
        done["arguments"] = item_->text;
        emit(exchange, "response.function_call_arguments.done", std::move(done));
        break;
    }
    if (item_->kind != Kind::kCall) {
      json::object part = place();
      part["part"] = text_part(*item_);
      emit(exchange, "response.content_part.done", std::move(part));
    }
    json::object item = item_json(*item_, true);
    emit(exchange, "response.output_item.done", {{"output_index", output_.size()}, {"item", item}});
    output_.push_back(std::move(item));
    item_.reset();
  }

  const AnswerHead head_;
  const bool stream_;
  const double ping_interval_s_;
  const json::object echoed_;
  const std::unique_ptr<AnswerParser> parser_;
  int64_t sequence_ = 0;
  json::array output_;  // items that are whole
  std::optional<Item> item_;
  RequestEnd end_;
};

}  // namespace

std::unique_ptr<AnswerWriter> response_answer_writer(AnswerHead head, const ChatRequest& chat,
                                                     const AnswerShape& shape,
                                                     const json::object& request,
                                                     const AnswerParserFactory& parsers) {
  return std::make_unique<ResponseWriter>(std::move(head), chat, shape, request, parsers);
}

}  // namespace winnow
