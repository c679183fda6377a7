#include "base/cgroup.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

namespace winnow {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

bool lists_controller(const std::string& controllers, std::string_view wanted) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

// This process's group for a version 1 controller, or its version 2 group if `controller` is empty.
// A membership line reads "number:controllers:/path".
std::optional<std::string> group_path(const CgroupPaths& paths, std::string_view controller) {
  std::ifstream membership(paths.membership);
  for (std::string line; std::getline(membership, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool matches =
        controller.empty() ? controllers.empty() : lists_controller(controllers, controller);
    if (matches) return line.substr(second + 1);
  }
  return std::nullopt;
}

// The folders of a group and of every group above it. Inside a container the path may name a folder
// that only the host sees: the root is then the container's own group.
std::vector<std::string> folders(const CgroupPaths& paths, const std::string& mount,
                                 std::string_view controller) {
  std::vector<std::string> found;
  std::string path = group_path(paths, controller).value_or("/");
  while (path.size() > 1) {
    found.push_back(paths.root + mount + path);
    path.resize(std::max<size_t>(1, path.rfind('/')));
  }
  found.push_back(paths.root + mount);
  return found;
}

std::optional<double> number_in(const std::string& path) {
  double value = 0;
  std::ifstream file(path);
  if (file >> value) return value;
  return std::nullopt;
}

// The value of a line "name value" of a memory.stat file, 0 if it is missing.
double stat_value(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string key;
  for (double value = 0; file >> key >> value;) {
    if (key == name) return value;
  }
  return 0;
}

// "QUOTA PERIOD" in microseconds; a quota of "max" is no number.
double cpu_limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  double quota = 0, period = 0;
  return file >> quota >> period && period > 0 ? quota / period : kNoLimit;
}

double cpu_limit_v1(const std::string& folder) {
  const auto quota = number_in(folder + "/cpu.cfs_quota_us");
  const auto period = number_in(folder + "/cpu.cfs_period_us");
  return quota && period && *quota > 0 && *period > 0 ? *quota / *period : kNoLimit;
}

// Version 1 writes "no limit" as a number near 2^63.
int64_t bytes_or_no_limit(double bytes) {
  return bytes < 0x1p62 ? static_cast<int64_t>(bytes) : INT64_MAX;
}

double memory_left(const std::string& folder, const char* limit_file, const char* usage_file,
                   std::string_view droppable) {
  const auto limit = number_in(folder + limit_file);
  const auto used = number_in(folder + usage_file);
  if (!limit || !used) return kNoLimit;
  return std::max(0.0, *limit - *used + stat_value(folder + "/memory.stat", droppable));
}

}  // namespace

double cgroup_cpu_limit(const CgroupPaths& paths) {
  double limit = kNoLimit;
  for (const std::string& folder : folders(paths, "", ""))
    limit = std::min(limit, cpu_limit_v2(folder));
  for (const std::string& folder : folders(paths, "/cpu", "cpu"))
    limit = std::min(limit, cpu_limit_v1(folder));
  return limit;
}

int64_t cgroup_memory_limit(const CgroupPaths& paths) {
  double limit = kNoLimit;
  for (const std::string& folder : folders(paths, "", "")) {
    limit = std::min(limit, number_in(folder + "/memory.max").value_or(kNoLimit));
  }
  for (const std::string& folder : folders(paths, "/memory", "memory")) {
    limit = std::min(limit, number_in(folder + "/memory.limit_in_bytes").value_or(kNoLimit));
  }
  return bytes_or_no_limit(limit);
}

int64_t cgroup_memory_available(const CgroupPaths& paths) {
  double left = kNoLimit;
  for (const std::string& folder : folders(paths, "", "")) {
    left = std::min(left, memory_left(folder, "/memory.max", "/memory.current", "inactive_file"));
  }
  for (const std::string& folder : folders(paths, "/memory", "memory")) {
    left = std::min(left, memory_left(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                                      "total_inactive_file"));
  }
  return bytes_or_no_limit(left);
}

}  // namespace winnow
