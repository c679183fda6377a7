#include "base/memory_info.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <string>

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

// A file that holds one number, or -1 if there is none ("max").
int64_t number_in(const char* path) {
  int64_t value = -1;
  std::ifstream file(path);
  return file >> value ? value : -1;
}

int64_t cgroup_available_bytes() {
  const int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const int64_t used = number_in("/sys/fs/cgroup/memory.current");
  return limit >= 0 && used >= 0 ? std::max<int64_t>(0, limit - used) : INT64_MAX;
}

}  // namespace

int64_t available_memory_bytes() {
  const int64_t system = meminfo_bytes("MemAvailable:");
  return std::min(system >= 0 ? system : INT64_MAX, cgroup_available_bytes());
}

int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace winnow
