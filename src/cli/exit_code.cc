#include "cli/exit_code.h"

namespace winnow {

ExitCode exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return ExitCode::kUsage;
    case ErrorCode::kNotFound:
    case ErrorCode::kCorruptFile:
    case ErrorCode::kUnsupported:
      return ExitCode::kBadFile;
    case ErrorCode::kOutOfMemory:
      return ExitCode::kOutOfMemory;
    case ErrorCode::kInterrupted:
      return ExitCode::kInterrupted;
    case ErrorCode::kContextExceeded:
    case ErrorCode::kNumerical:
    case ErrorCode::kIo:
    case ErrorCode::kStorageFull:
    case ErrorCode::kOverloaded:
    case ErrorCode::kShuttingDown:
    case ErrorCode::kInternal:
      return ExitCode::kRuntime;
  }
  return ExitCode::kRuntime;
}

}  // namespace winnow
