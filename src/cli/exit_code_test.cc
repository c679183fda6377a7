#include "cli/exit_code.h"

#include <gtest/gtest.h>

#include <map>

namespace winnow {
namespace {

TEST(ExitCode, EveryErrorHasItsCode) {
  const std::map<ErrorCode, int> codes = {{ErrorCode::kInvalidArgument, 2},
                                          {ErrorCode::kNotFound, 3},
                                          {ErrorCode::kCorruptFile, 3},
                                          {ErrorCode::kUnsupported, 3},
                                          {ErrorCode::kOutOfMemory, 4},
                                          {ErrorCode::kContextExceeded, 1},
                                          {ErrorCode::kInterrupted, 130},
                                          {ErrorCode::kNumerical, 1},
                                          {ErrorCode::kIo, 1},
                                          {ErrorCode::kOverloaded, 1},
                                          {ErrorCode::kShuttingDown, 1},
                                          {ErrorCode::kInternal, 1}};
  for (const auto& [error, code] : codes) {
    EXPECT_EQ(static_cast<int>(exit_code(error)), code) << static_cast<int>(error);
  }
}

}  // namespace
}  // namespace winnow
