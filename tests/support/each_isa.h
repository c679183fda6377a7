// Runs a test once for every instruction-set level this build knows. A level that this machine
// lacks shows as skipped, under its name.
//
//   using LinearOnEachIsa = EachIsa;
//   TEST_P(LinearOnEachIsa, MatchesTheReference) { use(kernels()); }
//   INSTANTIATE_TEST_SUITE_P(Isa, LinearOnEachIsa, all_isas(), isa_test_name);
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/table.h"
#include "support/slow_build.h"

namespace winnow {

class EachIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!cpu_supports(GetParam())) {
      GTEST_SKIP() << "not run: this CPU lacks " << isa_name(GetParam());
    }
    kernels_ = &kernel_table(GetParam());
    ASSERT_EQ(kernels_->isa, GetParam()) << "another level would be tested than the one named";
  }

  const KernelTable& kernels() const { return *kernels_; }

 private:
  const KernelTable* kernels_ = nullptr;
};

inline bool works_lane_by_lane(Isa isa) {
  return isa == Isa::kScalar || isa_name(isa).starts_with("emulated");
}

// Where tests take smaller cases.
inline bool is_slow(Isa isa) { return kSlowBuild || works_lane_by_lane(isa); }

inline auto all_isas() { return testing::ValuesIn(known_isas().begin(), known_isas().end()); }

inline std::string isa_test_name(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

}  // namespace winnow
