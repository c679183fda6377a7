// What a run of requests amounts to: percentiles of latencies, throughput, goodput.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/request_record.h"

namespace winnow {

// Between the two values next to the rank, linearly, as NumPy does. Requires sorted, non-empty
// `values` and `share` in [0, 1].
double percentile(std::span<const double> values, double share);

struct LatencySummary {
  int64_t count = 0;  // with none all figures are 0
  double mean = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  double max = 0;
};
LatencySummary summarize(std::vector<double> values);

// Most latencies that a request may have to count as good, in milliseconds.
struct GoodputLimits {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  std::optional<double> e2el_ms;

  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
  // Requires record.completed(). An answer of one token has a TPOT of 0 here.
  bool met_by(const RequestRecord& record) const;
};
// "ttft:500,tpot:50,e2el:10000", each at most once. kInvalidArgument naming `name`.
Result<GoodputLimits> parse_goodput_limits(std::string_view text, const std::string& name);

struct FailureCount {
  int64_t count = 0;
  std::string example;  // the first message
};

// Latencies in milliseconds, of completed requests only; ITL over the gaps of all of them.
struct LoadFigures {
  int64_t num_requests = 0;
  int64_t num_completed = 0;
  std::map<std::string, FailureCount> failures = {};  // by kind
  int64_t input_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  int64_t peak_concurrency = 0;
  double duration_s = 0;  // from the first request sent to the last one ended
  LatencySummary ttft = {};
  LatencySummary tpot = {};
  LatencySummary itl = {};
  LatencySummary e2el = {};
  int64_t num_good = 0;

  double per_second(int64_t number) const {
    return duration_s > 0 ? static_cast<double>(number) / duration_s : 0;
  }
};
LoadFigures load_figures(std::span<const RequestRecord> records, const GoodputLimits& limits);

}  // namespace winnow
