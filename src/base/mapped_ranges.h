// Which file is mapped where, for a signal handler that has to say which one was lost.
#pragma once

#include <cstddef>

namespace winnow::mapped_ranges {

// Remembers a mapping until remove(). `name` must live that long. The first few hundred are
// remembered; a later one is not. Both are safe from any thread.
void add(const void* begin, size_t size, const char* name);
void remove(const void* begin);

// The name of the mapping that holds `address`, or null. Safe in a signal handler.
const char* name_at(const void* address);

}  // namespace winnow::mapped_ranges
