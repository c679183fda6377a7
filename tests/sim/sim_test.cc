#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "sim/simulation.h"

namespace winnow::sim {
namespace {

int exit_code_of(const std::string& program, int num_steps) {
  const std::string arguments = " 0 " + std::to_string(num_steps) + " > /dev/null 2>&1";
  const int status = std::system((program + arguments).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::vector<std::string> mutants() {
  std::vector<std::string> names;
  std::istringstream list(WINNOW_SIM_MUTANT_NAMES);
  for (std::string name; std::getline(list, name, ',');) names.push_back(name);
  return names;
}

TEST(Sim, TwoThousandSeedsAnswerAsEachRequestDoesAlone) {
  SimOutcome sum;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const SimOutcome outcome = simulate(seed);
    ASSERT_EQ(outcome.failure, "") << "seed " << seed << ", step " << outcome.num_steps;
    sum.num_steps += outcome.num_steps;
    sum.num_answers += outcome.num_answers;
    sum.num_preemptions += outcome.num_preemptions;
    sum.num_adoptions += outcome.num_adoptions;
    sum.num_exchanges += outcome.num_exchanges;
    sum.num_copies += outcome.num_copies;
    sum.cached_tokens += outcome.cached_tokens;
  }
  // The seeds reach what they are to reach.
  EXPECT_GT(sum.num_steps, 500'000);
  EXPECT_GT(sum.num_answers, 10'000);
  EXPECT_GT(sum.num_preemptions, 300);
  EXPECT_GT(sum.num_adoptions, 30);
  EXPECT_GT(sum.num_exchanges, 500);
  EXPECT_GT(sum.num_copies, 1000);
  EXPECT_GT(sum.cached_tokens, 500'000);
}

TEST(Sim, ASeedRunsTheSameEveryTime) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const SimOutcome first = simulate(seed);
    const SimOutcome second = simulate(seed);
    EXPECT_EQ(first.trace, second.trace) << seed;
    EXPECT_EQ(first.num_steps, second.num_steps) << seed;
  }
}

TEST(Sim, TheProgramFindsNothingInTheRightSources) {
  EXPECT_EQ(exit_code_of(WINNOW_SIM_PROGRAM, 100'000), 0);
}

class KnownBug : public ::testing::TestWithParam<std::string> {};

TEST_P(KnownBug, IsFound) {
  const auto program = std::filesystem::path(WINNOW_SIM_MUTANTS) / GetParam();
  ASSERT_TRUE(std::filesystem::exists(program)) << program;
  EXPECT_NE(exit_code_of(program.string(), 1'000'000), 0);
}

INSTANTIATE_TEST_SUITE_P(Sim, KnownBug, ::testing::ValuesIn(mutants()),
                         [](const auto& bug) { return bug.param; });

}  // namespace
}  // namespace winnow::sim
