# Writes OUTPUT, the source file that names VERSION and the commit of SOURCE_DIR, if what it says has changed.
# Runs at every build: the commit changes without a configuration.
set(commit unknown)
find_package(Git QUIET)
if(Git_FOUND)
  # Sources without .git may lie within another project's checkout, whose commit says nothing of them.
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-cdup WORKING_DIRECTORY ${SOURCE_DIR}
                  RESULT_VARIABLE failed OUTPUT_VARIABLE way_up OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed AND way_up STREQUAL "")
    execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --short HEAD WORKING_DIRECTORY ${SOURCE_DIR}
                    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(found)
      set(commit ${found})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "cli/version.h"

namespace winnow {

const std::string_view kVersion = "@VERSION@";
const std::string_view kCommit = "@commit@";

}  // namespace winnow
]])
