#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/lost_file.h"
#include "cli/standard_streams.h"

int main(int argc, char** argv) {
  winnow::open_missing_streams();
  winnow::handle_lost_files();
  winnow::interrupt::install_handlers();
  winnow::Console console;
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(winnow::run_program(args, console));
}
