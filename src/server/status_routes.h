// What the server says of itself: health, readiness, models, requests, version.
#pragma once

#include <string_view>

#include "server/http_message.h"
#include "server/server_context.h"

namespace winnow {

// 200 if the engine is alive and makes progress.
HttpReply health_reply(const ServerContext& context, bool draining);
// 200 if a new request would be taken; else 503 telling why: "full", "draining", "failed".
HttpReply ready_reply(const ServerContext& context, bool draining);
HttpReply models_reply(const ServerContext& context);
// `id` as in the path.
HttpReply model_reply(const ServerContext& context, std::string_view id);
// What a client may want to know of the server's settings, and of the requests at hand.
HttpReply props_reply(const ServerContext& context);
HttpReply slots_reply(const ServerContext& context);
HttpReply version_reply(const ServerContext& context);

}  // namespace winnow
