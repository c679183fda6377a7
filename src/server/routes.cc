#include "server/routes.h"

namespace winnow {
namespace {

struct RouteTable {
  using enum RouteId;
  using enum RouteAccess;

  static constexpr Route kRoutes[] = {
      {kPage, "/", "GET", kOpen},
      {kHealth, "/health", "GET", kOpen},
      {kHealth, "/v1/health", "GET", kOpen},
      {kReady, "/ready", "GET", kOpen},
      {kServerVersion, "/version", "GET", kOpen},
      {kMetrics, "/metrics", "GET", kOpen},
      {kModels, "/v1/models", "GET", kKey},
      {kModel, "/v1/models/", "GET", kKey},
      {kTokenizerInfo, "/tokenizer_info", "GET", kKey},
      {kProps, "/props", "GET", kKey},
      {kSlots, "/slots", "GET", kKey},
      {kSelectionMap, "/winnow/map", "GET", kKey},
      {kSavedPrefixes, "/winnow/kv", "GET", kKey},
      {kSavedPrefix, "/winnow/kv/", "POST", kKey, true, true},
      {kChat, "/v1/chat/completions", "POST", kKey, true},
      {kChatRender, "/v1/chat/completions/render", "POST", kKey},
      {kChatInputTokens, "/v1/chat/completions/input_tokens", "POST", kKey},
      {kCompletions, "/v1/completions", "POST", kKey, true},
      {kCompletionsRender, "/v1/completions/render", "POST", kKey},
      {kResponses, "/v1/responses", "POST", kKey, true},
      {kEmbeddings, "/v1/embeddings", "POST", kKey},
      {kTokenize, "/tokenize", "POST", kKey},
      {kDetokenize, "/detokenize", "POST", kKey},
  };
};

bool matches(const Route& route, std::string_view path) {
  const bool takes_more = route.path.size() > 1 && route.path.ends_with('/');
  if (!takes_more) return path == route.path;
  return path.size() > route.path.size() && path.starts_with(route.path);
}

}  // namespace

std::span<const Route> all_routes() { return RouteTable::kRoutes; }

const Route* find_route(std::string_view path) {
  for (const Route& route : RouteTable::kRoutes) {
    if (matches(route, path)) return &route;
  }
  return nullptr;
}

bool allows(const Route& route, std::string_view method) {
  return method == route.method || (method == "HEAD" && route.method == "GET") ||
         (method == "DELETE" && route.deletes);
}

std::string allowed_methods(const Route& route) {
  return std::string(route.method == "GET" ? "GET, HEAD" : route.method) +
         (route.deletes ? ", DELETE" : "") + ", OPTIONS";
}

}  // namespace winnow
