#include "cli/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cli/exit_code.h"

namespace winnow::interrupt {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not take a lock");
std::atomic<bool> requested_flag{false};
// Readable while the flag is set: a wait can then neither miss a signal that comes just before it
// nor depend on the thread that handles the signal. -1 without handlers.
int requested_event = -1;

void on_interrupt(int /*signal*/) {
  if (requested_flag.exchange(true)) _exit(static_cast<int>(ExitCode::kInterrupted));
  eventfd_write(requested_event, 1);
}

}  // namespace

void install_handlers() {
  struct sigaction previous = {};
  sigaction(SIGINT, nullptr, &previous);
  if (previous.sa_handler != SIG_IGN) {
    requested_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // no SA_RESTART: a call that blocks returns at once
    sigaction(SIGINT, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of its write
}

void handle_termination() {
  if (requested_event < 0) requested_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGTERM, &action, nullptr);
}

const std::atomic<bool>& flag() { return requested_flag; }

void reset() {
  eventfd_t count = 0;
  if (requested_event >= 0) eventfd_read(requested_event, &count);
  requested_flag.store(false);
}

bool wait(int timeout_ms) {
  struct pollfd watched = {.fd = requested_event, .events = POLLIN, .revents = 0};
  if (!requested()) poll(&watched, 1, timeout_ms);
  return requested();
}

bool wait_readable(int fd) {
  struct pollfd watched[] = {{.fd = fd, .events = POLLIN, .revents = 0},
                             {.fd = requested_event, .events = POLLIN, .revents = 0}};
  while (!requested() && watched[0].revents == 0) {
    // Anything but a signal leaves it to the read to say what is wrong.
    if (poll(watched, 2, -1) < 0 && errno != EINTR) break;
  }
  return !requested();
}

}  // namespace winnow::interrupt
