#include "server/generation_routes.h"

#include <algorithm>

#include "base/escape.h"
#include "base/function_ref.h"
#include "engine/prompt_check.h"
#include "server/answer_run.h"
#include "server/chat_answer.h"
#include "server/completion_answer.h"
#include "server/error_map.h"
#include "server/response_answer.h"
#include "server/response_request.h"

namespace winnow {
namespace {

namespace json = boost::json;

AnswerRunOptions run_options(const GenerationSettings& settings, const AnswerShape& shape) {
  return {.stops = std::make_shared<const MarkSet>(settings.stops),
          .include_stop = settings.include_stop,
          .report_progress = settings.stream && settings.return_progress,
          .shown_control_tokens = shape.shown_control_tokens};
}

// Whether there is room for a token after a prompt of that size.
bool fits(const ServerContext& context, const PromptSize& prompt) {
  return prompt.tokens < context.service.context_tokens();
}

PromptSize size_of(const std::vector<TokenId>& prompt) { return {.tokens = std::ssize(prompt)}; }

// What is known before the text is turned into tokens, which may cost seconds.
PromptSize least_size(const ServerContext& context, size_t text_bytes) {
  return {.tokens = context.tokenizer.least_tokens(text_bytes), .exact = false};
}

void refuse_length(const ServerContext& context, const PromptSize& prompt,
                   const std::shared_ptr<Exchange>& exchange) {
  const int64_t context_tokens = context.service.context_tokens();
  const Error error = context_exceeded(context.service.model(), context_tokens, prompt);
  post_reply(exchange, context_exceeded_reply(error, prompt.tokens, context_tokens));
}

// Bytes of the longest text among the prompts of a completion that are used whole.
size_t longest_text_bytes(const json::object& request) {
  const RequestFields fields(request, kCompletions);
  const json::value* prompt = fields.find("prompt");
  if (prompt == nullptr || fields.find("truncate_prompt_tokens") != nullptr) return 0;
  if (prompt->is_string()) return prompt->get_string().size();
  size_t longest = 0;
  if (prompt->is_array()) {
    for (const json::value& element : prompt->get_array()) {
      if (element.is_string()) longest = std::max(longest, element.get_string().size());
    }
  }
  return longest;
}

Result<ChatRequest> checked_chat(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kChat));
  TRY_STATUS(check_model(context, request));
  return read_chat_request(request, context.settings());
}

Status check_completion(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kCompletions));
  return check_model(context, request);
}

Result<ChatRequest> checked_response(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kResponses));
  TRY_STATUS(check_model(context, request));
  return read_response_request(request, context.settings());
}

using MakeWriter =
    FunctionRef<std::unique_ptr<AnswerWriter>(std::vector<TokenId>, const AnswerShape&)>;

struct ChatRun {
  const ChatRequest& chat;
  std::string answer_id;
};

// Lets the first choice fill a map, if one was asked for and there may be something to see.
void record_map(const ServerContext& context, const ChatRun& run, const Caller& caller,
                ServiceRequest& request, AnswerRunOptions& options) {
  if (!run.chat.settings.record_map || !request.sparse || request.prompt.empty()) return;
  const auto record = context.maps.begin(run.answer_id, caller.tenant, request.prompt,
                                         context.service.model().config());
  if (record == nullptr) return;
  request.observer = &record->map;
  options.on_ended = [&maps = context.maps, record](int32_t choice, const RequestEnd& end) {
    if (choice == 0) maps.end(record, end);
  };
}

// Runs a conversation and lets the writer of its prompt answer.
void run_chat(const ServerContext& context, const ChatRun& run, const Caller& caller,
              std::shared_ptr<Exchange> exchange, MakeWriter make_writer) {
  const ChatRequest& chat = run.chat;
  const GenerationSettings& settings = chat.settings;
  const Result<RenderedText> rendered = render_conversation(context, chat);
  if (!rendered.ok()) return post_reply(exchange, error_reply(rendered.error()));
  const Result<AnswerShape> shape = context.shaper.chat_shape(chat.form, rendered->text, settings);
  if (!shape.ok()) return post_reply(exchange, error_reply(shape.error()));
  const PromptSize least = least_size(context, rendered->text.size());
  if (!settings.truncate_prompt_tokens && !fits(context, least)) {
    return refuse_length(context, least, exchange);
  }
  std::vector<TokenId> prompt = context.chat->encode(*rendered);
  truncate_prompt(settings, context.service.context_tokens(), prompt);
  if (!fits(context, size_of(prompt))) return refuse_length(context, size_of(prompt), exchange);
  std::vector<ServiceRequest> requests;
  for (int32_t i = 0; i < settings.n; ++i) {
    requests.push_back(service_request(settings, prompt, i));
    requests.back().cache_scope = prefix_tenant(caller, settings);
    requests.back().reuse = context.options.reuse;
    requests.back().constraint = context.shaper.constraint(*shape, settings);
  }
  AnswerRunOptions options = run_options(settings, *shape);
  record_map(context, run, caller, requests.front(), options);
  run_answer(context.service, context.tokenizer, context.metrics, std::move(requests), options,
             std::move(exchange), make_writer(std::move(prompt), *shape));
}

}  // namespace

void post_reply(const std::shared_ptr<Exchange>& exchange, HttpReply reply) {
  exchange->post(
      [exchange, reply = std::move(reply)]() mutable { exchange->reply(std::move(reply)); });
}

std::string prefix_tenant(const Caller& caller, const GenerationSettings& settings) {
  return std::to_string(caller.tenant.size()) + ":" + caller.tenant + settings.cache_scope;
}

Status check_model(const ServerContext& context, const json::object& request) {
  const std::optional<std::string> name = RequestFields(request, kChat).text("model");
  if (!context.options.strict_model_name || !name || *name == context.options.model_id) {
    return Ok{};
  }
  return fail(ErrorCode::kNotFound, "model: expected '%s', found '%s'",
              escaped(context.options.model_id).c_str(), escaped(*name, 80).c_str());
}

Result<RenderedText> render_conversation(const ServerContext& context, const ChatRequest& chat) {
  if (context.chat == nullptr) {
    return fail(ErrorCode::kUnsupported,
                "messages: expected a model with a chat template, found a base model, which "
                "continues text; use /v1/completions");
  }
  return context.chat->render(chat.messages, chat.prompt);
}

void answer_chat(const ServerContext& context, const json::object& request, const Caller& caller,
                 std::shared_ptr<Exchange> exchange) {
  const Result<ChatRequest> chat = checked_chat(context, request);
  if (!chat.ok()) return post_reply(exchange, error_reply(chat.error()));
  const AnswerHead head = new_answer_head("chatcmpl-", context.options.model_id);
  run_chat(context, {*chat, head.id}, caller, std::move(exchange),
           [&](std::vector<TokenId> prompt, const AnswerShape& shape) {
             return chat_answer_writer(head, *chat, std::move(prompt), shape, context.tokenizer,
                                       context.parsers);
           });
}

void answer_response(const ServerContext& context, const json::object& request,
                     const Caller& caller, std::shared_ptr<Exchange> exchange) {
  const Result<ChatRequest> chat = checked_response(context, request);
  if (!chat.ok()) return post_reply(exchange, error_reply(chat.error()));
  const AnswerHead head = new_answer_head("resp_", context.options.model_id);
  run_chat(context, {*chat, head.id}, caller, std::move(exchange),
           [&](const std::vector<TokenId>& /*prompt*/, const AnswerShape& shape) {
             return response_answer_writer(head, *chat, shape, request, context.parsers);
           });
}

void answer_completion(const ServerContext& context, const json::object& request,
                       const Caller& caller, std::shared_ptr<Exchange> exchange) {
  const Status known = check_completion(context, request);
  if (!known.ok()) return post_reply(exchange, error_reply(known.error()));
  const PromptSize least = least_size(context, longest_text_bytes(request));
  if (!fits(context, least)) return refuse_length(context, least, exchange);
  Result<CompletionRequest> completion = read_completion_request(request, context.settings());
  if (!completion.ok()) return post_reply(exchange, error_reply(completion.error()));
  const GenerationSettings settings = completion->settings;
  const Result<AnswerShape> shape = context.shaper.text_shape(request, settings);
  if (!shape.ok()) return post_reply(exchange, error_reply(shape.error()));
  std::vector<ServiceRequest> requests;
  for (CompletionPrompt& prompt : completion->prompts) {
    truncate_prompt(settings, context.service.context_tokens(), prompt.ids);
    if (!fits(context, size_of(prompt.ids))) {
      return refuse_length(context, size_of(prompt.ids), exchange);
    }
    for (int32_t i = 0; i < settings.best_of; ++i) {
      ServiceRequest one = service_request(settings, prompt.ids, i);
      one.cache_scope = prefix_tenant(caller, settings);
      one.reuse = context.options.reuse;
      if (completion->echo && settings.logprobs) {
        one.score_prompt = true;
        one.num_prompt_top_logprobs = std::max(one.num_prompt_top_logprobs, settings.top_logprobs);
      }
      one.constraint = context.shaper.constraint(*shape, settings);
      requests.push_back(std::move(one));
    }
  }
  auto writer = completion_answer_writer(new_answer_head("cmpl-", context.options.model_id),
                                         std::move(completion).value(), context.tokenizer);
  run_answer(context.service, context.tokenizer, context.metrics, std::move(requests),
             run_options(settings, *shape), std::move(exchange), std::move(writer));
}

}  // namespace winnow
