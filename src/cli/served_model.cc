#include "cli/served_model.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/escape.h"
#include "cli/filler_text.h"
#include "cli/json_output.h"
#include "cli/streamed_completion.h"

namespace winnow {
namespace {

namespace json = boost::json;

// Nothing if it is no object.
std::optional<json::object> object_of(const std::string& body) {
  json::error_code error;
  json::value value = json::parse(body, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

Result<std::string> first_model(HttpCalls& calls) {
  constexpr const char* kPath = "/v1/models";
  TRY(const HttpAnswer answer, http_answer(calls, {.method = "GET", .path = kPath}));
  if (answer.status != kHttpOk) {
    return fail(ErrorCode::kIo, "%s: expected status 200, found %d: %s", kPath, answer.status,
                http_error_message(answer.body).c_str());
  }
  const std::optional<json::object> object = object_of(answer.body);
  const json::value* models = object ? object->if_contains("data") : nullptr;
  const json::value* first =
      models != nullptr && models->is_array() ? models->get_array().if_contains(0) : nullptr;
  const json::object* model = first != nullptr ? first->if_object() : nullptr;
  const json::value* id = model != nullptr ? model->if_contains("id") : nullptr;
  if (id == nullptr || !id->is_string()) {
    return fail(ErrorCode::kIo, "%s: expected a list of models, found '%s'", kPath,
                escaped(answer.body, 80).c_str());
  }
  return std::string(id->get_string());
}

std::vector<TokenId> ids_in(const json::object& object) {
  const json::value* tokens = object.if_contains("tokens");
  if (tokens == nullptr || !tokens->is_array()) return {};
  std::vector<TokenId> ids;
  for (const json::value& token : tokens->get_array()) {
    json::error_code error;
    const auto id = token.to_number<TokenId>(error);
    if (error || id < 0) return {};
    ids.push_back(id);
  }
  return ids;
}

// vLLM's form, and llama-server's in the same object.
std::string tokenize_body(const std::string& model) {
  const json::string text = json_text(builtin_prose());
  return json::serialize(json::object{{"model", json_text(model)},
                                      {"prompt", text},
                                      {"content", text},
                                      {"add_special_tokens", false}});
}

}  // namespace

Result<ServedModel> ask_served_model(HttpCalls& calls, const std::optional<std::string>& name) {
  ServedModel model;
  if (name) {
    model.name = *name;
  } else {
    TRY(model.name, first_model(calls));
  }
  TRY(const HttpAnswer answer,
      http_answer(calls, {.path = "/tokenize", .body = tokenize_body(model.name)}));
  // A server without it is no failure: prompts are then text.
  const std::optional<json::object> object =
      answer.status == kHttpOk ? object_of(answer.body) : std::nullopt;
  if (!object) return model;
  model.text_ids = ids_in(*object);
  const json::value* context = object->if_contains("max_model_len");
  json::error_code error;
  if (context == nullptr || !context->is_number()) return model;
  const auto tokens = context->to_number<int64_t>(error);
  if (!error && tokens > 0) model.context_tokens = tokens;
  return model;
}

}  // namespace winnow
