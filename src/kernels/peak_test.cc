#include "kernels/peak.h"

#include <gtest/gtest.h>

#include <set>

namespace winnow {
namespace {

TEST(Peak, EveryLevelOfThisCpuIsMeasured) {
  ThreadPool pool(1);
  std::set<Isa> measured;
  for (const MatrixPeak& peak : measure_matrix_peaks(pool)) {
    measured.insert(peak.isa);
    EXPECT_GT(peak.operations_per_second, 1e6) << isa_name(peak.isa) << " " << peak.number;
  }
  for (const Isa isa : known_isas()) EXPECT_EQ(measured.contains(isa), cpu_supports(isa));
}

TEST(Peak, MemoryIsRead) {
  ThreadPool pool(2);
  EXPECT_GT(measure_read_bandwidth(pool), 1e7);
}

}  // namespace
}  // namespace winnow
