#include "cli/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/file_descriptor.h"

namespace winnow {

void notify_service_manager(std::string_view state) {
  const char* name = std::getenv("NOTIFY_SOCKET");
  const std::string_view path = name == nullptr ? std::string_view() : name;
  sockaddr_un address{};
  const bool usable = path.size() > 1 && path.size() < sizeof(address.sun_path) &&
                      (path.front() == '/' || path.front() == '@');
  if (!usable) return;
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  // An abstract name, which begins with a zero.
  if (path.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL,
           reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace winnow
