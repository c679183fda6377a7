// What was built. version.cc is written while building: see stamp_version.cmake.
#pragma once

#include <string_view>

namespace winnow {

extern const std::string_view kVersion;
extern const std::string_view kCommit;  // "unknown" where the sources are not a git checkout

}  // namespace winnow
