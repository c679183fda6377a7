// sim [FIRST_SEED] [STEPS]: simulates seed after seed until so many steps are done. Exit code 3: a
// seed failed. A broken invariant aborts; the seed is the last one printed.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "sim/simulation.h"

int main(int argc, char** argv) {
  uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  const int64_t steps = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 1'000'000;
  winnow::sim::SimOutcome sum;
  for (; sum.num_steps < steps; ++seed) {
    if (seed % 100 == 0 || steps == 1) {
      std::printf("seed %" PRIu64 "\n", seed);
      std::fflush(stdout);
    }
    const winnow::sim::SimOutcome outcome = winnow::sim::simulate(seed);
    if (!outcome.failure.empty()) {
      std::printf("seed %" PRIu64 ", step %" PRId64 ": %s\n", seed, outcome.num_steps,
                  outcome.failure.c_str());
      return 3;
    }
    sum.num_steps += outcome.num_steps;
    sum.num_answers += outcome.num_answers;
    sum.num_preemptions += outcome.num_preemptions;
    sum.most_preemptions = std::max(sum.most_preemptions, outcome.most_preemptions);
    sum.cached_tokens += outcome.cached_tokens;
    sum.num_adoptions += outcome.num_adoptions;
    sum.num_exchanges += outcome.num_exchanges;
    sum.num_copies += outcome.num_copies;
  }
  std::printf("%" PRId64 " steps, %" PRId64 " answers, %" PRId64
              " preemptions (of one request %" PRId64 "), %" PRId64
              " tokens from the cache, %" PRId64 " adoptions, %" PRId64 " exchanges, %" PRId64
              " copies\n",
              sum.num_steps, sum.num_answers, sum.num_preemptions, sum.most_preemptions,
              sum.cached_tokens, sum.num_adoptions, sum.num_exchanges, sum.num_copies);
  return 0;
}
