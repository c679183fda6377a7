#include "server/token_routes.h"

#include <boost/json/serialize.hpp>

#include "base/utf8.h"
#include "server/chat_request.h"
#include "server/completion_request.h"
#include "server/error_map.h"
#include "server/generation_routes.h"
#include "server/openai_types.h"

namespace winnow {
namespace {

namespace json = boost::json;

void answer(const std::shared_ptr<Exchange>& exchange, const Result<json::value>& body) {
  if (!body.ok()) return post_reply(exchange, error_reply(body.error()));
  post_reply(exchange, {.body = json::serialize(*body)});
}

Result<std::vector<TokenId>> conversation_ids(const ServerContext& context,
                                              const json::object& request, Endpoint endpoint) {
  TRY(const ChatRequest chat, read_chat_prompt(request, endpoint));
  TRY(const RenderedText rendered, render_conversation(context, chat));
  return context.chat->encode(rendered);
}

// `prompt` and `messages` are vLLM's names, `content` is llama-server's.
Result<std::vector<TokenId>> ids_to_tokenize(const ServerContext& context,
                                             const json::object& request) {
  const RequestFields fields(request, kTokenize);
  if (fields.list("messages") != nullptr) {
    return conversation_ids(context, request, kTokenize);
  }
  if (const std::optional<std::string> content = fields.text("content")) {
    if (!fields.flag("parse_special").value_or(true)) return context.tokenizer.encode(*content);
    return raw_prompt_ids(*content, fields.flag("add_special").value_or(false), context.tokenizer);
  }
  const json::value* prompt = fields.find("prompt");
  if (prompt == nullptr || !prompt->is_string()) {
    return fail(ErrorCode::kInvalidArgument,
                "prompt: expected a string, or \"messages\" or \"content\" in its place, found %s",
                prompt == nullptr ? "none" : shown_json(*prompt).c_str());
  }
  return raw_prompt_ids({prompt->get_string().data(), prompt->get_string().size()},
                        fields.flag("add_special_tokens").value_or(true), context.tokenizer);
}

Result<json::value> tokenized(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kTokenize));
  TRY_STATUS(check_model(context, request));
  TRY(const std::vector<TokenId> ids, ids_to_tokenize(context, request));
  const RequestFields fields(request, kTokenize);
  json::object body;
  if (fields.flag("with_pieces").value_or(false)) {
    json::array pieces;
    for (const TokenId id : ids) {
      pieces.push_back({{"id", id}, {"piece", token_text(context.tokenizer, id)}});
    }
    body["tokens"] = std::move(pieces);
  } else {
    body["tokens"] = ids_json(ids);
  }
  body["count"] = ids.size();
  body["max_model_len"] = context.service.context_tokens();
  body["token_strs"] = nullptr;
  if (fields.flag("return_token_strs").value_or(false)) {
    json::array texts;
    for (const TokenId id : ids) texts.push_back(json::value(token_text(context.tokenizer, id)));
    body["token_strs"] = std::move(texts);
  }
  return json::value(std::move(body));
}

Result<json::value> detokenized(const ServerContext& context, const json::object& request) {
  TRY_STATUS(check_fields(request, kTokenize));
  const RequestFields fields(request, kTokenize);
  if (fields.list("tokens") == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "tokens: expected a list of token ids, found none");
  }
  const std::vector<TokenId> ids = fields.integers("tokens");
  for (const TokenId id : ids) {
    if (id < context.tokenizer.vocab_size()) continue;
    return fail(ErrorCode::kInvalidArgument, "tokens: expected token ids from 0 to %d, found %d",
                context.tokenizer.vocab_size() - 1, id);
  }
  const std::string text = valid_utf8(context.tokenizer.decode(ids, true));
  return json::value({{"prompt", text}, {"text", text}, {"content", text}});
}

Result<std::vector<TokenId>> rendered_chat(const ServerContext& context,
                                           const json::object& request) {
  TRY_STATUS(check_fields(request, kChat));
  TRY_STATUS(check_model(context, request));
  return conversation_ids(context, request, kChat);
}

json::object rendered_json(const ServerContext& context, const std::vector<TokenId>& ids) {
  return {{"model", context.options.model_id}, {"token_ids", ids_json(ids)}};
}

}  // namespace

void tokenize(const ServerContext& context, const json::object& request, const Caller& /*caller*/,
              std::shared_ptr<Exchange> exchange) {
  answer(exchange, tokenized(context, request));
}

void detokenize(const ServerContext& context, const json::object& request, const Caller& /*caller*/,
                std::shared_ptr<Exchange> exchange) {
  answer(exchange, detokenized(context, request));
}

void render_chat(const ServerContext& context, const json::object& request,
                 const Caller& /*caller*/, std::shared_ptr<Exchange> exchange) {
  const auto ids = rendered_chat(context, request);
  if (!ids.ok()) return post_reply(exchange, error_reply(ids.error()));
  answer(exchange, json::value(rendered_json(context, *ids)));
}

void render_completion(const ServerContext& context, const json::object& request,
                       const Caller& /*caller*/, std::shared_ptr<Exchange> exchange) {
  const auto rendered = [&]() -> Result<json::value> {
    TRY_STATUS(check_fields(request, kCompletions));
    TRY_STATUS(check_model(context, request));
    TRY(const std::vector<CompletionPrompt> prompts, read_prompts(request, context.tokenizer));
    json::array list;
    for (const CompletionPrompt& prompt : prompts) {
      list.push_back(rendered_json(context, prompt.ids));
    }
    return json::value(std::move(list));
  };
  answer(exchange, rendered());
}

void count_chat_tokens(const ServerContext& context, const json::object& request,
                       const Caller& /*caller*/, std::shared_ptr<Exchange> exchange) {
  const auto ids = rendered_chat(context, request);
  if (!ids.ok()) return post_reply(exchange, error_reply(ids.error()));
  answer(exchange, json::value({{"object", "input_tokens"}, {"input_tokens", ids->size()}}));
}

void refuse_embeddings(const ServerContext& /*context*/, const json::object& /*request*/,
                       const Caller& /*caller*/, std::shared_ptr<Exchange> exchange) {
  post_reply(exchange, error_reply(fail(ErrorCode::kUnsupported,
                                        "the served model generates text and has no embeddings")));
}

HttpReply tokenizer_info_reply(const ServerContext& context) {
  const Tokenizer& tokenizer = context.tokenizer;
  const std::string eos = valid_utf8(tokenizer.piece_or_empty(tokenizer.eos()));
  const std::string chat_template = template_source(context.service.model());
  json::object info;
  info["tokenizer_class"] = "winnow";
  info["vocab_size"] = tokenizer.vocab_size();
  info["model_max_length"] = context.service.context_tokens();
  info["add_bos_token"] = tokenizer.adds_bos();
  info["bos_token"] = valid_utf8(tokenizer.piece_or_empty(tokenizer.bos()));
  info["eos_token"] = eos;
  info["pad_token"] = eos;
  info["chat_template"] = chat_template.empty() ? json::value() : json::value(chat_template);
  return {.body = json::serialize(info)};
}

std::string template_source(const Model& model) {
  const Result<std::string> source =
      model.file().metadata().string_or("tokenizer.chat_template", "");
  return source.ok() ? valid_utf8(*source) : std::string();
}

}  // namespace winnow
