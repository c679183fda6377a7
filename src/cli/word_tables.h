// Common English words from which names are made.
#pragma once

#include <span>
#include <string_view>

namespace winnow {

// Each word once, within and across the lists.
std::span<const std::string_view> adjectives();
std::span<const std::string_view> nouns();

}  // namespace winnow
