// The verbs of the program. Each takes its arguments without its own name and returns the exit
// code, or an error that the caller prints and maps to one.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "cli/console.h"
#include "cli/exit_code.h"
#include "cli/flags.h"

namespace winnow {

using Arguments = std::span<const std::string>;

Result<ExitCode> cmd_run(Arguments args, Console& console);
Result<ExitCode> cmd_chat(Arguments args, Console& console);
Result<ExitCode> cmd_map(Arguments args, Console& console);
Result<ExitCode> cmd_inspect(Arguments args, Console& console);
Result<ExitCode> cmd_tokenize(Arguments args, Console& console);
Result<ExitCode> cmd_detokenize(Arguments args, Console& console);
Result<ExitCode> cmd_calibrate(Arguments args, Console& console);
Result<ExitCode> cmd_eval_kl(Arguments args, Console& console);
Result<ExitCode> cmd_eval_curve(Arguments args, Console& console);
Result<ExitCode> cmd_eval_layers(Arguments args, Console& console);
Result<ExitCode> cmd_eval_needle(Arguments args, Console& console);
Result<ExitCode> cmd_eval_ppl(Arguments args, Console& console);
Result<ExitCode> cmd_eval_ruler(Arguments args, Console& console);
Result<ExitCode> cmd_serve(Arguments args, Console& console);
Result<ExitCode> cmd_bench(Arguments args, Console& console);
Result<ExitCode> cmd_bench_attention(Arguments args, Console& console);
Result<ExitCode> cmd_bench_peak(Arguments args, Console& console);
Result<ExitCode> cmd_bench_serve(Arguments args, Console& console);
Result<ExitCode> cmd_version(Arguments args, Console& console);

// Whether the verb is to go on: false after its help was asked for and printed.
Result<bool> parse_or_help(FlagSet& flags, Arguments args, Console& console);

// The whole program: finds the verb, runs it, prints its error.
ExitCode run_program(Arguments args, Console& console);

}  // namespace winnow
