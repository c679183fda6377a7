#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace winnow {

OutputStream::OutputStream(int fd) : fd_(fd), is_terminal_(isatty(fd) == 1) {}

bool OutputStream::write(std::string_view text) {
  while (!text.empty() && error_ == 0) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  return error_ == 0;
}

Status OutputStream::status(const char* name) const {
  if (error_ == 0 || error_ == EPIPE) return Ok{};
  return fail(ErrorCode::kIo, "%s: expected to write the output, found '%s'", name,
              std::strerror(error_));
}

int OutputStream::width() const {
  struct winsize size = {};
  if (ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

void Console::note(std::string_view line) {
  if (!quiet) err.write(std::string(line) + "\n");
}

std::string Console::styled(const OutputStream& stream, const char* code, std::string_view text) {
  const char* no_color = std::getenv("NO_COLOR");
  const bool plain = !stream.is_terminal() || (no_color != nullptr && *no_color != '\0');
  if (plain) return std::string(text);
  return std::string("\x1b[") + code + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace winnow
