// Lower case of ASCII letters; all other bytes stay as they are, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace winnow {

inline char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lower_case(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = lower_case(c);
  return lowered;
}

}  // namespace winnow
