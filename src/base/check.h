// CHECK: a programmer error stops the process at once. No input from outside may reach one.
#pragma once

namespace winnow {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

#define CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::winnow::check_failed(__FILE__, __LINE__, #condition))

}  // namespace winnow
