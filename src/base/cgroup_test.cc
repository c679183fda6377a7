#include "base/cgroup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "support/temp_folder.h"

namespace winnow {
namespace {

class CgroupTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_.path(name);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  CgroupPaths paths() const { return {folder_.path("membership"), folder_.path("fs")}; }

  test::TempFolder folder_;
};

TEST_F(CgroupTest, NothingThereMeansNoLimit) {
  EXPECT_TRUE(std::isinf(cgroup_cpu_limit(paths())));
  EXPECT_EQ(cgroup_memory_available(paths()), INT64_MAX);
  EXPECT_EQ(cgroup_memory_limit(paths()), INT64_MAX);
}

TEST_F(CgroupTest, TheTightestGroupOnTheWayUpCounts) {
  write("membership", "0::/user/job\n");
  write("fs/cpu.max", "max 100000\n");
  write("fs/user/cpu.max", "150000 100000\n");
  write("fs/user/job/cpu.max", "400000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(paths()), 1.5);
  write("fs/user/job/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(paths()), 0.5);
}

TEST_F(CgroupTest, InsideAContainerTheRootIsTheGroup) {
  write("membership", "0::/docker/abc\n");
  write("fs/cpu.max", "200000 100000\n");
  write("fs/memory.max", "1000\n");
  write("fs/memory.current", "400\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(paths()), 2);
  EXPECT_EQ(cgroup_memory_available(paths()), 600);
  EXPECT_EQ(cgroup_memory_limit(paths()), 1000);
}

TEST_F(CgroupTest, DroppablePageCacheCountsAsFree) {
  write("membership", "0::/\n");
  write("fs/memory.max", "1000\n");
  write("fs/memory.current", "990\n");
  write("fs/memory.stat", "anon 100\nfile 890\ninactive_file 800\nactive_file 90\n");
  EXPECT_EQ(cgroup_memory_available(paths()), 810);
  write("fs/memory.max", "max\n");
  EXPECT_EQ(cgroup_memory_available(paths()), INT64_MAX);
  EXPECT_EQ(cgroup_memory_limit(paths()), INT64_MAX);
}

TEST_F(CgroupTest, VersionOneIsReadFromItsControllers) {
  write("membership", "4:cpu,cpuacct:/job\n3:memory:/job\n");
  write("fs/cpu/job/cpu.cfs_quota_us", "250000\n");
  write("fs/cpu/job/cpu.cfs_period_us", "100000\n");
  write("fs/memory/job/memory.limit_in_bytes", "5000\n");
  write("fs/memory/job/memory.usage_in_bytes", "3000\n");
  write("fs/memory/job/memory.stat", "total_inactive_file 500\n");
  write("fs/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("fs/memory/memory.usage_in_bytes", "1\n");
  EXPECT_DOUBLE_EQ(cgroup_cpu_limit(paths()), 2.5);
  EXPECT_EQ(cgroup_memory_available(paths()), 2500);
  EXPECT_EQ(cgroup_memory_limit(paths()), 5000);
  write("fs/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_memory_limit(paths()), INT64_MAX);
  write("fs/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_TRUE(std::isinf(cgroup_cpu_limit(paths())));
}

}  // namespace
}  // namespace winnow
