#include "server/prefix_routes.h"

#include <boost/json/serialize.hpp>

#include "server/answer_run.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/error_map.h"
#include "server/generation_routes.h"
#include "server/openai_types.h"

namespace winnow {
namespace {

namespace json = boost::json;

json::object prefix_json(const PrefixInfo& info) {
  return {{"name", info.name},
          {"object", "winnow.kv"},
          {"tokens", info.num_tokens},
          {"bytes", info.file_bytes},
          {"attention", info.sparse ? "sparse" : "dense"},
          {"created", info.saved}};
}

class SaveWriter final : public AnswerWriter {
 public:
  void on_token(Exchange& /*exchange*/, int32_t /*choice*/, AnswerToken /*token*/) override {}
  void on_end(Exchange& /*exchange*/, int32_t /*choice*/, AnswerEnd end) override {
    end_ = std::move(end.end);
  }
  void finish(Exchange& exchange) override {
    json::object body = prefix_json(end_.saved.value_or(PrefixInfo{}));
    body["usage"] =
        usage_json({.prompt_tokens = end_.prompt_tokens, .cached_tokens = end_.cached_tokens});
    body["timings"] = timings_json(end_);
    exchange.reply({.body = json::serialize(body)});
  }
  void fail(Exchange& exchange, const Error& error) override { exchange.reply(error_reply(error)); }

 private:
  RequestEnd end_;
};

struct PromptToSave {
  GenerationSettings settings;
  std::vector<TokenId> ids;
};

Result<PromptToSave> read_conversation(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kChat));
  TRY(ChatRequest chat, read_chat_request(request, context.settings()));
  TRY(const RenderedText rendered, render_conversation(context, chat));
  return PromptToSave{std::move(chat.settings), context.chat->encode(rendered)};
}

Result<PromptToSave> read_text(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kCompletions));
  TRY(CompletionRequest completion, read_completion_request(request, context.settings()));
  if (completion.prompts.size() != 1) {
    return fail(ErrorCode::kInvalidArgument, "prompt: expected one, found %zu",
                completion.prompts.size());
  }
  return PromptToSave{std::move(completion.settings), std::move(completion.prompts[0].ids)};
}

Result<ServiceRequest> read_save(const ServerContext& context, const json::object& request,
                                 const Caller& caller, const std::string& name) {
  if (context.prefixes == nullptr) return no_prefix_folder();
  TRY_STATUS(check_prefix_name(name));
  TRY_STATUS(check_model(context, request));
  const bool is_chat = request.contains("messages");
  TRY(PromptToSave prompt,
      is_chat ? read_conversation(context, request) : read_text(context, request));
  truncate_prompt(prompt.settings, context.service.context_tokens(), prompt.ids);
  ServiceRequest save = service_request(prompt.settings, std::move(prompt.ids), 0);
  save.cache_scope = prefix_tenant(caller, prompt.settings);
  save.save_as = PrefixName{.owner = caller.tenant, .name = name};
  return save;
}

}  // namespace

void save_prefix(const ServerContext& context, const json::object& request, const Caller& caller,
                 const std::string& name, std::shared_ptr<Exchange> exchange) {
  Result<ServiceRequest> save = read_save(context, request, caller, name);
  if (!save.ok()) return post_reply(exchange, error_reply(save.error()));
  std::vector<ServiceRequest> requests;
  requests.push_back(std::move(save).value());
  run_answer(context.service, context.tokenizer, context.metrics, std::move(requests), {},
             std::move(exchange), std::make_unique<SaveWriter>());
}

HttpReply prefixes_reply(const ServerContext& context, const Caller& caller) {
  if (context.prefixes == nullptr) return error_reply(no_prefix_folder());
  json::array data;
  for (const PrefixInfo& info : context.prefixes->list(caller.tenant)) {
    data.push_back(prefix_json(info));
  }
  return {.body = json::serialize(json::object{{"object", "list"}, {"data", std::move(data)}})};
}

HttpReply remove_prefix_reply(const ServerContext& context, const Caller& caller,
                              const std::string& name) {
  if (context.prefixes == nullptr) return error_reply(no_prefix_folder());
  const Status removed = context.prefixes->remove({.owner = caller.tenant, .name = name});
  if (removed.ok()) {
    return {.body = json::serialize(json::object{{"name", name}, {"deleted", true}})};
  }
  if (removed.error().code != ErrorCode::kNotFound) return error_reply(removed.error());
  return error_reply({404, "not_found_error", "prefix_not_found"}, removed.error().message);
}

}  // namespace winnow
