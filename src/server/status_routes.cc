#include "server/status_routes.h"

#include <boost/json/serialize.hpp>

#include "base/escape.h"
#include "server/error_map.h"

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

HttpReply version_reply(const ServerContext& context) {
  return {.body = json::serialize(json::object{{"version", context.options.version}})};
}

}  // namespace winnow
