#include "server/status_routes.h"

#include <boost/json/serialize.hpp>

#include "base/escape.h"
#include "base/utf8.h"
#include "server/error_map.h"
#include "server/token_routes.h"

namespace winnow {
namespace {

namespace json = boost::json;

HttpReply unavailable(std::string_view code, std::string_view message) {
  return error_reply({503, "unavailable_error", code}, message);
}

HttpReply status_reply(std::string_view status) {
  return {.body = json::serialize(json::object{{"status", status}})};
}

int64_t num_parameters(const Model& model) {
  int64_t count = 0;
  for (const TensorInfo& tensor : model.file().tensors()) {
    int64_t elements = 1;
    for (const auto dim : tensor.dims) elements *= static_cast<int64_t>(dim);
    count += elements;
  }
  return count;
}

json::object model_card(const ServerContext& context) {
  const Model& model = context.service.model();
  const ModelConfig& config = model.config();
  return {{"id", context.options.model_id},
          {"object", "model"},
          {"created", context.started},
          {"owned_by", "winnow"},
          {"root", context.options.model_id},
          {"parent", nullptr},
          {"max_model_len", context.service.context_tokens()},
          {"meta",
           {{"n_ctx_train", config.context_tokens},
            {"n_params", num_parameters(model)},
            {"size", model.weight_bytes()},
            {"n_vocab", context.tokenizer.vocab_size()},
            {"n_embd", config.width}}}};
}

std::string_view phase_name(RequestPhase phase) {
  switch (phase) {
    case RequestPhase::kWaiting:
      return "waiting";
    case RequestPhase::kPrompt:
      return "prompt";
    case RequestPhase::kDecode:
      return "decode";
  }
  return "waiting";
}

// Why the engine cannot be relied on; nothing if it can.
std::optional<HttpReply> engine_trouble(const ServerContext& context, const ServiceStatus& status) {
  if (status.failed) return unavailable("engine_failed", "the engine has ended");
  if (status.seconds_in_step > context.options.watchdog_s) {
    return unavailable("engine_stuck", "the engine has been in one step for too long");
  }
  return std::nullopt;
}

}  // namespace

HttpReply health_reply(const ServerContext& context, bool draining) {
  std::optional<HttpReply> trouble = engine_trouble(context, context.service.status());
  if (trouble) return std::move(*trouble);
  if (draining) return unavailable("shutting_down", "the server is shutting down");
  return status_reply("ok");
}

HttpReply ready_reply(const ServerContext& context, bool draining) {
  const ServiceStatus status = context.service.status();
  std::optional<HttpReply> trouble = engine_trouble(context, status);
  if (trouble) return std::move(*trouble);
  if (draining) return unavailable("shutting_down", "the server is shutting down");
  if (status.num_waiting >= status.max_waiting) return unavailable("full", "the queue is full");
  return status_reply("ready");
}

HttpReply models_reply(const ServerContext& context) {
  json::array models;
  models.push_back(model_card(context));
  return {.body = json::serialize(json::object{{"object", "list"}, {"data", std::move(models)}})};
}

HttpReply model_reply(const ServerContext& context, std::string_view id) {
  if (id == context.options.model_id) return {.body = json::serialize(model_card(context))};
  return error_reply({404, "not_found_error", "model_not_found"},
                     "model: expected '" + escaped(context.options.model_id) + "', found '" +
                         escaped(id, 80) + "'");
}

HttpReply props_reply(const ServerContext& context) {
  const ServiceStatus status = context.service.status();
  json::object props;
  props["default_generation_settings"] = {{"n_ctx", context.service.context_tokens()},
                                          {"params",
                                           {{"temperature", 1},
                                            {"top_k", -1},
                                            {"top_p", 1},
                                            {"min_p", 0},
                                            {"repeat_penalty", 1},
                                            {"attention", context.options.attention.mode}}}};
  props["total_slots"] = status.max_running;
  props["max_waiting"] = status.max_waiting;
  props["model_alias"] = context.options.model_id;
  props["model_path"] = context.options.model_id;
  props["chat_template"] = template_source(context.service.model());
  const Tokenizer& tokenizer = context.tokenizer;
  props["bos_token"] = valid_utf8(tokenizer.piece_or_empty(tokenizer.bos()));
  props["eos_token"] = valid_utf8(tokenizer.piece_or_empty(tokenizer.eos()));
  props["modalities"] = {{"vision", false}, {"audio", false}};
  props["build_info"] = "winnow " + context.options.version;
  return {.body = json::serialize(props)};
}

HttpReply slots_reply(const ServerContext& context) {
  const ServiceStatus status = context.service.status();
  json::array slots;
  for (const RequestStatus& request : status.requests) {
    slots.push_back({{"id", slots.size()},
                     {"id_task", static_cast<uint64_t>(request.id)},
                     {"is_processing", request.phase != RequestPhase::kWaiting},
                     {"n_ctx", context.service.context_tokens()},
                     {"phase", phase_name(request.phase)},
                     {"n_prompt", request.prompt_tokens},
                     {"n_processed", request.processed_tokens},
                     {"n_cached", request.cached_tokens},
                     {"n_generated", request.generated_tokens},
                     {"age_s", request.age_s},
                     {"tok_s", request.tokens_per_s},
                     {"eta_s", request.eta_s}});
  }
  return {.body = json::serialize(slots)};
}

HttpReply version_reply(const ServerContext& context) {
  return {.body = json::serialize(json::object{{"version", context.options.version}})};
}

}  // namespace winnow
