#include "server/drain.h"

namespace winnow {

bool drain_server(Api& api, GenerationService& service, HttpServer& http, double grace_s) {
  // Of a client that takes no more bytes; the engine ends a cancelled request within a step.
  constexpr double kLastWordSeconds = 5;
  api.drain();
  service.drain();
  http.drain();
  if (http.wait_until_empty(grace_s)) return true;
  for (const RequestStatus& request : service.status().requests) service.cancel(request.id);
  http.wait_until_empty(kLastWordSeconds);
  return false;
}

}  // namespace winnow
