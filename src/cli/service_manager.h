// What the system's service manager is told, if one started the program.
#pragma once

#include <string_view>

namespace winnow {

// Sends a line such as "READY=1" to the socket that $NOTIFY_SOCKET names. Without one, or if nobody
// listens, nothing happens.
void notify_service_manager(std::string_view state);

}  // namespace winnow
