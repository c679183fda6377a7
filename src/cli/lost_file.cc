#include "cli/lost_file.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

#include "base/mapped_ranges.h"
#include "cli/exit_code.h"

namespace winnow {
namespace {

struct sigaction action_before = {};

// Only what POSIX calls safe in a handler.
void say(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);  // there is nobody else to tell
}

void on_bus_error(int signal, siginfo_t* info, void* /*context*/) {
  const bool is_access = info->si_code > 0;
  const char* name = is_access ? mapped_ranges::name_at(info->si_addr) : nullptr;
  if (name == nullptr) {
    sigaction(signal, &action_before, nullptr);
    if (!is_access) raise(signal);  // sent by a process; an access is repeated on return
    return;
  }
  say("winnow: ");
  say(name);
  say(": expected the file to stay as it was, found it shorter while in use; "
      "replace a model by renaming, not by overwriting\n");
  _exit(static_cast<int>(ExitCode::kBadFile));
}

}  // namespace

void handle_lost_files() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &action_before);
}

}  // namespace winnow
