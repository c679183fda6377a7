// The orderly end of a server.
#pragma once

#include "engine/generation_service.h"
#include "server/api.h"
#include "server/http_server.h"

namespace winnow {

// Refuses new requests, finishes those under way within `grace_s`, cancels the rest, which tells
// their clients, and waits for the last connection. Whether nothing had to be cancelled.
bool drain_server(Api& api, GenerationService& service, HttpServer& http, double grace_s);

}  // namespace winnow
