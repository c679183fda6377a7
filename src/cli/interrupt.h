// Interrupt: Ctrl+C as a flag that long work looks at.
#pragma once

#include <atomic>

namespace winnow {

// The flag is the process's, because a signal handler can reach nothing else.
namespace interrupt {

// From here on the first Ctrl+C sets the flag and the second ends the process with 130. A process
// that was started with Ctrl+C ignored keeps ignoring it. A reader that has gone away becomes a
// write error instead of a signal.
void install_handlers();

// A request to end the process counts as Ctrl+C from here on. Requires install_handlers().
void handle_termination();

const std::atomic<bool>& flag();
inline bool requested() { return flag().load(std::memory_order_relaxed); }

// Makes the next Ctrl+C the first one again.
void reset();

// Waits for Ctrl+C, at most so long; whether it came.
bool wait(int timeout_ms);
// Waits until `fd` has something to read or has ended; false if Ctrl+C comes first or came before.
bool wait_readable(int fd);

}  // namespace interrupt
}  // namespace winnow
