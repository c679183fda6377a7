// Files that the program writes beside its answer.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace winnow {

// Replaces the file's contents. kIo naming the file.
Status write_file(const std::string& path, std::string_view contents);

}  // namespace winnow
