// Simulation: the real page pool, prefix cache and scheduler against a model whose pages tell at
// once when they are stale, foreign, half filled or shifted.
#pragma once

#include <cstdint>
#include <string>

namespace winnow::sim {

struct SimOutcome {
  std::string failure;  // empty = none
  uint64_t trace = 0;   // in which every decision and every token shows
  int64_t num_steps = 0;
  int64_t num_answers = 0;  // complete, each equal to its run alone with an empty cache
  int64_t num_preemptions = 0;
  int64_t most_preemptions = 0;  // of one request
  int64_t cached_tokens = 0;
  int64_t num_adoptions = 0;
  int64_t num_copies = 0;
  int64_t num_exchanges = 0;
};

// Broken invariants of the classes themselves end the process.
SimOutcome simulate(uint64_t seed);

}  // namespace winnow::sim
