// winnow bench peak: what the machine itself can do, which every other figure is a share of.
#include "cli/commands.h"

namespace winnow {

Result<ExitCode> cmd_bench_peak(Arguments args, Console& console) {
  bool json = false;
  FlagSet flags("bench peak", "Measures the machine's matrix throughput and read bandwidth.",
                "Every speed of 'winnow bench' can be told as a share of these.\n");
  flags.toggle("--json", json, "print one JSON object");
  TRY(const bool go_on, parse_or_help(flags, args, console));
  if (!go_on) return ExitCode::kOk;
  return fail(ErrorCode::kUnsupported, "bench peak: expected kernels that measure it, found none");
}

}  // namespace winnow
