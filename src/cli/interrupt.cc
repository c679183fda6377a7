#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "cli/exit_code.h"

namespace winnow::interrupt {
namespace {

static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may not take a lock");
std::atomic<bool> requested_flag{false};

void on_interrupt(int /*signal*/) {
  if (requested_flag.exchange(true)) _exit(static_cast<int>(ExitCode::kInterrupted));
}

}  // namespace

void install_handlers() {
  struct sigaction previous = {};
  sigaction(SIGINT, nullptr, &previous);
  if (previous.sa_handler != SIG_IGN) {
    struct sigaction action = {};
    action.sa_handler = on_interrupt;  // no SA_RESTART: a read from the terminal returns at once
    sigaction(SIGINT, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
}

const std::atomic<bool>& flag() { return requested_flag; }

void reset() { requested_flag.store(false); }

}  // namespace winnow::interrupt
