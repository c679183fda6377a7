// The program's exit codes, and the one place that maps errors to them.
#pragma once

#include "base/result.h"

namespace winnow {

enum class ExitCode {
  kOk = 0,
  kRuntime = 1,
  kUsage = 2,
  kBadFile = 3,  // a file is missing, damaged or of a kind that is not supported
  kOutOfMemory = 4,
  kInterrupted = 130,  // 128 + SIGINT, as shells report it
};

ExitCode exit_code(ErrorCode code);

}  // namespace winnow
