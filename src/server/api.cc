#include "server/api.h"

#include <algorithm>
#include <exception>

#include "base/escape.h"
#include "server/error_map.h"
#include "server/generation_routes.h"
#include "server/openai_types.h"
#include "server/page.h"
#include "server/prefix_routes.h"
#include "server/routes.h"
#include "server/status_routes.h"
#include "server/token_routes.h"

namespace winnow {
namespace {

namespace json = boost::json;

// The client's own id for its request, which is only echoed, or a new one.
std::string request_id(const HttpHead& head) {
  constexpr size_t kMaxBytes = 128;
  const std::string_view given = head.header("X-Request-Id");
  const bool plain =
      !given.empty() && given.size() <= kMaxBytes &&
      std::all_of(given.begin(), given.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  return plain ? std::string(given) : new_answer_id("req-");
}

using PostRoute = std::function<void(const ServerContext&, const json::object&, const Caller&,
                                     std::shared_ptr<Exchange>)>;

// What a path has behind its route's.
std::string name_in(const Route& route, const HttpHead& head) {
  return head.path.substr(route.path.size());
}

PostRoute post_route(const Route& route, const HttpHead& head) {
  switch (route.id) {
    case RouteId::kSavedPrefix:
      return
          [name = name_in(route, head)](const ServerContext& context, const json::object& request,
                                        const Caller& caller, std::shared_ptr<Exchange> exchange) {
            save_prefix(context, request, caller, name, std::move(exchange));
          };
    case RouteId::kChat:
      return answer_chat;
    case RouteId::kCompletions:
      return answer_completion;
    case RouteId::kChatRender:
      return render_chat;
    case RouteId::kChatInputTokens:
      return count_chat_tokens;
    case RouteId::kCompletionsRender:
      return render_completion;
    case RouteId::kResponses:
      return answer_response;
    case RouteId::kEmbeddings:
      return refuse_embeddings;
    case RouteId::kTokenize:
      return tokenize;
    case RouteId::kDetokenize:
      return detokenize;
    default:
      return nullptr;
  }
}

void run_post(const PostRoute& route, const ServerContext& context, const std::string& body,
              const Caller& caller, const std::shared_ptr<Exchange>& exchange) {
  // Libraries throw where memory runs out; the request ends alone.
  if (exchange->gone()) return;
  try {
    const Result<json::object> request = parse_json_object(body);
    if (!request.ok()) return post_reply(exchange, error_reply(request.error()));
    route(context, *request, caller, exchange);
  } catch (const std::exception&) {
    post_reply(exchange, error_reply(fail(ErrorCode::kOutOfMemory,
                                          "the request needs too much "
                                          "memory")));
  }
}

}  // namespace

Api::Api(const ServerContext& context, ApiOptions options, RequestLog& log)
    : context_(context), options_(std::move(options)), log_(log), workers_(options_.num_workers) {}

std::optional<HttpReply> Api::check(const HttpHead& head) {
  std::optional<HttpReply> reply = refuse(head);
  if (!reply) return std::nullopt;
  for (HttpHeader& header : options_.cors.headers(head)) reply->headers.push_back(header);
  reply->headers.push_back({"X-Request-Id", request_id(head)});
  return reply;
}

std::optional<HttpReply> Api::refuse(const HttpHead& head) const {
  const Route* route = find_route(head.path);
  if (route == nullptr) return error_reply(error_form(404), "there is no such path");
  // Liveness tells nothing, and probes ask under whatever name.
  if (route->id != RouteId::kHealth && !options_.hosts.allows(head)) {
    return error_reply({403, "invalid_request_error", "host_not_allowed"},
                       "Host: expected a name of this machine or one of --allowed-hosts, found '" +
                           escaped(head.header("Host"), 80) + "'");
  }
  if (head.method == "OPTIONS") return options_.cors.preflight(head, allowed_methods(*route));
  if (!allows(*route, head.method)) {
    HttpReply reply = error_reply(error_form(405), "the path does not know this method");
    reply.headers.push_back({"Allow", allowed_methods(*route)});
    return reply;
  }
  const bool changes = head.method == "POST" || head.method == "DELETE";
  if (changes && !options_.cors.may_post(head)) {
    return error_reply(error_form(403), "pages of this origin may not use the server");
  }
  if (route->access == RouteAccess::kKey && !options_.keys.tenant(head)) {
    return error_reply(error_form(401), "expected a valid API key, as 'Authorization: Bearer KEY'");
  }
  if (route->generates && head.method == "POST" && draining_.load()) {
    return error_reply(error_form(503), "the server is shutting down");
  }
  return std::nullopt;
}

void Api::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const std::string id = request_id(request.head);
  exchange->add_header("X-Request-Id", id);
  exchange->details()["request_id"] = id;
  for (const HttpHeader& header : options_.cors.headers(request.head)) {
    exchange->add_header(header.name, header.value);
  }
  const Route* route = find_route(request.head.path);
  if (route == nullptr) return exchange->reply(refusal(404, "there is no such path"));
  if (request.head.method == "POST")
    return answer_post(*route, std::move(request), std::move(exchange));
  if (route->id == RouteId::kSelectionMap || route->id == RouteId::kSavedPrefixes ||
      route->id == RouteId::kSavedPrefix) {
    return answer_later(*route, std::move(request.head), std::move(exchange));
  }
  exchange->reply(answer_get(*route, request.head));
}

HttpReply Api::answer_get(const Route& route, const HttpHead& head) const {
  const bool draining = draining_.load();
  switch (route.id) {
    case RouteId::kPage:
      return page_reply();
    case RouteId::kHealth:
      return health_reply(context_, draining);
    case RouteId::kReady:
      return ready_reply(context_, draining);
    case RouteId::kServerVersion:
      return version_reply(context_);
    case RouteId::kMetrics:
      return metrics_reply();
    case RouteId::kTokenizerInfo:
      return tokenizer_info_reply(context_);
    case RouteId::kProps:
      return props_reply(context_);
    case RouteId::kSlots:
      return slots_reply(context_);
    case RouteId::kModels:
      return models_reply(context_);
    case RouteId::kModel:
      return model_reply(context_, std::string_view(head.path).substr(route.path.size()));
    default:
      return error_reply(error_form(404), "there is no such path");
  }
}

HttpReply Api::metrics_reply() const {
  const HttpServer* http = http_.load();
  const HttpCounts counts = http == nullptr ? HttpCounts{} : http->counts();
  return {.content_type = Metrics::kContentType,
          .body = context_.metrics.text(context_.service.status(), counts)};
}

HttpReply Api::map_reply(const HttpHead& head, const Caller& caller) const {
  constexpr std::string_view kName = "request=";
  const std::string_view query = head.query;
  const std::string_view id = query.starts_with(kName) ? query.substr(kName.size()) : "";
  const auto record = context_.maps.find(id, caller.tenant);
  if (record == nullptr) {
    return error_reply(error_form(404),
                       "request: expected the id of one of the last sparse answers that were asked "
                       "for with \"record_map\": true, found '" +
                           escaped(id, 80) + "'");
  }
  return {.body = selection_json(*record, context_.tokenizer)};
}

void Api::answer_later(const Route& route, HttpHead head, std::shared_ptr<Exchange> exchange) {
  work_on(*exchange, 0, [this, &route, head = std::move(head), exchange] {
    const Caller caller{options_.keys.tenant(head).value_or("")};
    if (route.id == RouteId::kSelectionMap) {
      post_reply(exchange, map_reply(head, caller));
    } else if (route.id == RouteId::kSavedPrefixes) {
      post_reply(exchange, prefixes_reply(context_, caller));
    } else {
      post_reply(exchange, remove_prefix_reply(context_, caller, name_in(route, head)));
    }
  });
}

void Api::answer_post(const Route& route, HttpRequest request, std::shared_ptr<Exchange> exchange) {
  const std::optional<std::string> tenant = options_.keys.tenant(request.head);
  const auto num_bytes = std::ssize(request.body);
  work_on(*exchange, num_bytes,
          [this, function = post_route(route, request.head), caller = Caller{tenant.value_or("")},
           body = std::make_shared<const std::string>(std::move(request.body)),
           exchange] { run_post(function, context_, *body, caller, exchange); });
}

void Api::work_on(Exchange& exchange, int64_t num_bytes, std::function<void()> task) {
  if (workers_.add(num_bytes, std::move(task))) return;
  exchange.reply(error_reply(fail(ErrorCode::kOverloaded, "too many requests wait to be read")));
}

HttpReply Api::refusal(int status, std::string_view message) {
  return error_reply(error_form(status), message);
}

void Api::finished(const ExchangeSummary& summary) {
  context_.metrics.on_http(summary.status, summary.client_left);
  log_.write(summary);
}

}  // namespace winnow
