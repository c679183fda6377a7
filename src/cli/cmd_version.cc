#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/loaded_model.h"
#include "cli/version.h"

namespace winnow {

Result<ExitCode> cmd_version(Arguments args, Console& console) {
  FlagSet flags("version", "Prints the version, the instruction set in use and the threads.", "");
  TRY(const bool go_on, parse_or_help(flags, args, console));
  if (!go_on) return ExitCode::kOk;
  TRY(const KernelTable* kernels, chosen_kernels());
  std::string supported;
  for (const Isa isa : known_isas()) {
    if (cpu_supports(isa)) supported += " " + std::string(isa_name(isa));
  }
  console.out.write("winnow " + std::string(kVersion) + " (" + std::string(kCommit) +
                    ")\ninstruction set: " + std::string(isa_name(kernels->isa)) +
                    " (this CPU has:" + supported +
                    ")\nthreads: " + std::to_string(usable_threads()) + "\n");
  return ExitCode::kOk;
}

}  // namespace winnow
