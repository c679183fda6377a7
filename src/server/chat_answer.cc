#include "server/chat_answer.h"

#include <boost/json/serialize.hpp>

#include "server/error_map.h"
#include "server/openai_types.h"
#include "server/stream_writer.h"
#include "server/token_scores.h"

namespace winnow {
namespace {

namespace json = boost::json;

json::array tool_calls_delta(const std::vector<ToolCallDelta>& calls) {
  json::array list;
  for (const ToolCallDelta& call : calls) {
    json::object function;
    if (!call.name.empty()) function["name"] = call.name;
    function["arguments"] = call.arguments;
    json::object entry{{"index", call.index}};
    if (!call.id.empty()) {
      entry["id"] = call.id;
      entry["type"] = "function";
    }
    entry["function"] = std::move(function);
    list.push_back(std::move(entry));
  }
  return list;
}

// Readers differ in the name they know.
void set_reasoning(json::object& message, std::string_view reasoning) {
  message["reasoning_content"] = reasoning;
  message["reasoning"] = reasoning;
}

json::object delta_json(const AnswerDelta& delta) {
  json::object object;
  if (!delta.reasoning.empty()) set_reasoning(object, delta.reasoning);
  if (!delta.content.empty()) object["content"] = delta.content;
  if (!delta.tool_calls.empty()) object["tool_calls"] = tool_calls_delta(delta.tool_calls);
  return object;
}

class ChatStreamWriter final : public StreamWriter {
 public:
  ChatStreamWriter(AnswerHead head, const ChatRequest& request, std::vector<TokenId> prompt,
                   const AnswerShape& shape, const Tokenizer& tokenizer,
                   const AnswerParserFactory& parsers)
      : StreamWriter(std::move(head), "chat.completion.chunk", request.settings, tokenizer),
        prompt_(std::move(prompt)) {
    for (int32_t i = 0; i < settings_.n; ++i)
      choices_.push_back({.parser = parsers(parser_options(shape))});
    usage_.add_prompt(static_cast<int64_t>(prompt_.size()));
  }

  void on_token(Exchange& exchange, int32_t choice, AnswerToken token) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    ++state.num_tokens;
    usage_.add_token();
    open(exchange, choice);
    const AnswerDelta delta = state.parser->push(token.text);
    state.called_tools |= !delta.tool_calls.empty();
    if (delta.empty() && !settings_.logprobs && !settings_.return_token_ids) return;
    json::object entry = choice_json(choice, delta_json(delta));
    if (settings_.logprobs) {
      entry["logprobs"] = {{"content", one_element(chat_logprob(tokenizer_, token.token))}};
    }
    if (settings_.return_token_ids) entry["token_ids"] = ids_json({token.token.token});
    json::object news = chunk(one_element(std::move(entry)));
    if (settings_.timings_per_token) {
      news["timings"] = timings_json(token, static_cast<int64_t>(prompt_.size()), state.num_tokens);
    }
    send(exchange, std::move(news));
  }

  void on_end(Exchange& exchange, int32_t choice, AnswerEnd end) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    open(exchange, choice);
    usage_.add_end(choice, end.end);
    for (const AnswerDelta& delta : {state.parser->push(end.text), state.parser->finish()}) {
      if (delta.empty()) continue;
      state.called_tools |= !delta.tool_calls.empty();
      send(exchange, chunk(one_element(choice_json(choice, delta_json(delta)))));
    }
    send_end(exchange, choice_json(choice, {}), end,
             chat_finish_reason(end.end, state.called_tools));
  }

 private:
  struct Choice {
    std::unique_ptr<AnswerParser> parser;
    int64_t num_tokens = 0;
    bool opened = false;
    bool called_tools = false;
  };

  static json::object choice_json(int32_t choice, json::object delta) {
    json::object entry;
    entry["index"] = choice;
    entry["delta"] = std::move(delta);
    entry["logprobs"] = nullptr;
    entry["finish_reason"] = nullptr;
    return entry;
  }

  // The chunk that names the role. Clients take its arrival for the first token's.
  void open(Exchange& exchange, int32_t choice) {
    Choice& state = choices_[static_cast<size_t>(choice)];
    if (std::exchange(state.opened, true)) return;
    json::object first =
        chunk(one_element(choice_json(choice, {{"role", "assistant"}, {"content", ""}})));
    if (settings_.return_token_ids) first["prompt_token_ids"] = ids_json(prompt_);
    send(exchange, std::move(first));
  }

  const std::vector<TokenId> prompt_;
  std::vector<Choice> choices_;
};

class ChatBodyWriter final : public AnswerWriter {
 public:
  ChatBodyWriter(AnswerHead head, const ChatRequest& request, std::vector<TokenId> prompt,
                 const AnswerShape& shape, const Tokenizer& tokenizer,
                 const AnswerParserFactory& parsers)
      : head_(std::move(head)),
        settings_(request.settings),
        prompt_(std::move(prompt)),
        tokenizer_(tokenizer),
        usage_(request.settings.n),
        prompt_logprobs_(tokenizer, settings_.prompt_logprobs.value_or(0)) {
    for (int32_t i = 0; i < settings_.n; ++i)
      choices_.push_back({.parser = parsers(parser_options(shape))});
  }

  // Of the first choice, for all.
  void on_prompt_scores(Exchange& /*exchange*/, int32_t /*choice*/,
                        std::vector<ScoredToken> scores) override {
    prompt_logprobs_.add(scores);
  }

  void on_token(Exchange& /*exchange*/, int32_t choice, AnswerToken token) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    state.take(state.parser->push(token.text));
    if (settings_.logprobs) state.logprobs.push_back(chat_logprob(tokenizer_, token.token));
    if (settings_.return_token_ids) state.ids.push_back(token.token.token);
  }

  void on_end(Exchange& /*exchange*/, int32_t choice, AnswerEnd end) override {
    Choice& state = choices_[static_cast<size_t>(choice)];
    state.take(state.parser->push(end.text));
    state.take(state.parser->finish());
    state.end = std::move(end);
    usage_.add_end(choice, state.end.end);
  }

  void finish(Exchange& exchange) override {
    json::object body;
    body["id"] = head_.id;
    body["object"] = "chat.completion";
    body["created"] = head_.created;
    body["model"] = head_.model;
    json::array choices;
    for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(choice_json(i));
    body["choices"] = std::move(choices);
    body["usage"] = usage_json(usage_.ended());
    body["timings"] = timings_json(choices_.front().end.end);
    if (settings_.return_token_ids) body["prompt_token_ids"] = ids_json(prompt_);
    if (settings_.prompt_logprobs) body["prompt_logprobs"] = prompt_logprobs_.take();
    exchange.reply({.body = json::serialize(body)});
  }

  void fail(Exchange& exchange, const Error& error) override { exchange.reply(error_reply(error)); }

 private:
  struct ToolCall {
    std::string id, name, arguments;
  };
  struct Choice {
    std::unique_ptr<AnswerParser> parser;
    std::string reasoning = {};
    std::string content = {};
    std::vector<ToolCall> calls = {};
    json::array logprobs = {};
    std::vector<TokenId> ids = {};
    AnswerEnd end = {};

    void take(const AnswerDelta& delta) {
      reasoning += delta.reasoning;
      content += delta.content;
      for (const ToolCallDelta& call : delta.tool_calls) {
        const auto idx = static_cast<size_t>(call.index);
        if (idx >= calls.size()) calls.resize(idx + 1);
        calls[idx].id += call.id;
        calls[idx].name += call.name;
        calls[idx].arguments += call.arguments;
      }
    }
  };

  json::object choice_json(size_t idx) const {
    const Choice& choice = choices_[idx];
    json::object message{{"role", "assistant"}};
    message["content"] = choice.content;
    if (choice.content.empty() && !choice.calls.empty()) message["content"] = nullptr;
    if (!choice.reasoning.empty()) set_reasoning(message, choice.reasoning);
    if (!choice.calls.empty()) {
      json::array calls;
      for (const ToolCall& call : choice.calls) {
        calls.push_back({{"id", call.id},
                         {"type", "function"},
                         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
      message["tool_calls"] = std::move(calls);
    }
    json::object entry;
    entry["index"] = idx;
    entry["message"] = std::move(message);
    entry["logprobs"] = nullptr;
    if (settings_.logprobs) entry["logprobs"] = {{"content", choice.logprobs}};
    entry["finish_reason"] = chat_finish_reason(choice.end.end, !choice.calls.empty());
    entry["stop_reason"] = stop_reason(choice.end, tokenizer_);
    if (settings_.return_token_ids) entry["token_ids"] = ids_json(choice.ids);
    return entry;
  }

  const AnswerHead head_;
  const GenerationSettings settings_;
  const std::vector<TokenId> prompt_;
  const Tokenizer& tokenizer_;
  UsageTotal usage_;
  PromptLogprobs prompt_logprobs_;
  std::vector<Choice> choices_;
};

}  // namespace

std::unique_ptr<AnswerWriter> chat_answer_writer(AnswerHead head, const ChatRequest& request,
                                                 std::vector<TokenId> prompt,
                                                 const AnswerShape& shape,
                                                 const Tokenizer& tokenizer,
                                                 const AnswerParserFactory& parsers) {
  if (request.settings.stream) {
    return std::make_unique<ChatStreamWriter>(std::move(head), request, std::move(prompt), shape,
                                              tokenizer, parsers);
  }
  return std::make_unique<ChatBodyWriter>(std::move(head), request, std::move(prompt), shape,
                                          tokenizer, parsers);
}

}  // namespace winnow
