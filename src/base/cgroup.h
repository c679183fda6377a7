// The CPU and memory limits of the control groups this process is in (version 2 or 1), the
// process's own group and all groups above it: the tightest one counts.
#pragma once

#include <cstdint>
#include <string>

namespace winnow {

// Where the system tells of control groups; tests point elsewhere.
struct CgroupPaths {
  std::string membership = "/proc/self/cgroup";
  std::string root = "/sys/fs/cgroup";
};

// CPUs by quota, a fraction possible; infinity if there is no limit.
double cgroup_cpu_limit(const CgroupPaths& paths = {});

// The memory limit in bytes; INT64_MAX if there is none.
int64_t cgroup_memory_limit(const CgroupPaths& paths = {});

// Bytes left below the memory limit, counting page cache that can be dropped as free; INT64_MAX if
// there is no limit.
int64_t cgroup_memory_available(const CgroupPaths& paths = {});

}  // namespace winnow
