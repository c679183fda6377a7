// The one table of routes: paths, methods, and who may call them. What is not in it is 404.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace winnow {

enum class RouteId {
  kPage,
  kHealth,
  kReady,
  kServerVersion,
  kMetrics,
  kModels,
  kModel,
  kTokenizerInfo,
  kProps,
  kSlots,
  kSelectionMap,
  kSavedPrefixes,
  kSavedPrefix,
  kChat,
  kChatRender,
  kChatInputTokens,
  kCompletions,
  kCompletionsRender,
  kResponses,
  kEmbeddings,
  kTokenize,
  kDetokenize,
};

enum class RouteAccess {
  kOpen,  // anybody
  kKey,   // with an API key, if there are any
};

struct Route {
  RouteId id;
  std::string_view path;    // a trailing '/' takes one more segment: "/v1/models/" + id
  std::string_view method;  // GET, which HEAD goes with, or POST
  RouteAccess access;
  bool generates = false;  // POST runs the engine: refused while the server drains
  bool deletes = false;    // DELETE removes what POST made
};

std::span<const Route> all_routes();
// Null if there is none.
const Route* find_route(std::string_view path);
bool allows(const Route& route, std::string_view method);
// For Allow: "GET, HEAD, OPTIONS".
std::string allowed_methods(const Route& route);

}  // namespace winnow
