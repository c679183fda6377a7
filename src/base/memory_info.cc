#include "base/memory_info.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/cgroup.h"

namespace winnow {
namespace {

// The value of a "Name: 123 kB" line of /proc/meminfo in bytes, or -1.
int64_t meminfo_bytes(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == name) return kib * 1024;
  }
  return -1;
}

}  // namespace

int64_t available_memory_bytes() {
  const int64_t system = meminfo_bytes("MemAvailable:");
  return std::min(system >= 0 ? system : INT64_MAX, cgroup_memory_available());
}

int64_t total_memory_bytes() {
  const int64_t system = meminfo_bytes("MemTotal:");
  return std::min(system >= 0 ? system : INT64_MAX, cgroup_memory_limit());
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace winnow
