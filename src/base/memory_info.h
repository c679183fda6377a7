// How much memory this process may still use, and how much it has used.
#pragma once

#include <cstdint>

namespace winnow {

// What the system can hand out without swapping, within the cgroup's limit.
int64_t available_memory_bytes();

// All that there is, whoever uses it: the system's memory, or the cgroup's limit if that is less.
int64_t total_memory_bytes();

// Largest resident size so far, mapped files included.
int64_t peak_resident_bytes();

}  // namespace winnow
