#include "cli/commands.h"
namespace winnow {
Result<ExitCode> cmd_bench_peak(Arguments, Console&) {
  return fail(ErrorCode::kUnsupported, "peak");
}
}  // namespace winnow
