// What happens when a mapped file loses pages that are in use.
#pragma once

namespace winnow {

// From here on a model file that another process shortens ends the program with its name and the
// exit code of a bad file, where the system would end it by SIGBUS. Any other SIGBUS does what it
// did before.
void handle_lost_files();

}  // namespace winnow
