// What was built: both come from CMake.
#pragma once

#include <string_view>

namespace winnow {

inline constexpr std::string_view kVersion = WINNOW_VERSION;
inline constexpr std::string_view kCommit = WINNOW_COMMIT;

}  // namespace winnow
