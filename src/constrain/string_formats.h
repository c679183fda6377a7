// The values of "format" that strings are held to, each as a pattern.
#pragma once

#include <optional>
#include <string_view>

namespace winnow {

// None if the format is not known.
std::optional<std::string_view> format_pattern(std::string_view format);

}  // namespace winnow
