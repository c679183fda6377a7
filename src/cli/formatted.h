// formatted: printf into a string, for short pieces of text.
#pragma once

#include <cstdio>
#include <string>

namespace winnow {

// What does not fit in 255 bytes is cut.
template <class... Args>
std::string formatted(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

}  // namespace winnow
