// A run of many requests against one server: arrivals by a rate (open loop), or always so many
// under way (closed loop).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_prompts.h"
#include "cli/http_calls.h"
#include "cli/length_mix.h"
#include "cli/request_record.h"

namespace winnow {

// So many failures one after the other end a closed loop.
inline constexpr int64_t kMaxFailuresInRow = 100;

struct LoadPlan {
  std::string model;
  std::optional<double> rate;  // requests per second, Poisson; none = closed loop
  int64_t concurrency = 1;     // of the closed loop
  std::optional<int64_t> num_requests;
  std::optional<double> seconds;  // after which nothing more is sent; what runs is waited for
  LengthMix lengths;
  int64_t max_tokens = 0;
  uint64_t seed = 0;
};

struct LoadResult {
  std::vector<RequestRecord> records;  // in the order sent
  bool interrupted = false;            // by Ctrl+C; requests then under way failed as "cancelled"
};

// `on_request_end` hears how many have ended. Requires num_requests or seconds.
LoadResult run_load(HttpCalls& calls, const LoadPlan& plan, BenchPrompts& prompts,
                    const std::function<void(int64_t num_ended)>& on_request_end);

}  // namespace winnow
