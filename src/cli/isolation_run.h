// The isolation scenario: what one long prompt does to streams that decode beside it, and they to
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench_prompts.h"
#include "cli/http_calls.h"
#include "cli/length_mix.h"
#include "cli/request_record.h"

namespace winnow {

// Tokens of each stream in the time before the long prompt.
inline constexpr int64_t kTokensBefore = 20;

struct IsolationPlan {
  std::string model;
  int64_t num_streams = 8;
  LengthMix stream_lengths;       // of the streams' prompts
  int64_t stream_max_tokens = 0;  // more than come while the long prompt is read
  int64_t long_prompt_tokens = 16384;
  uint64_t seed = 0;
};

struct IsolationResult {
  std::vector<RequestRecord> streams;
  double steady_s = 0;  // all streams decode since; with the records' clock
  std::optional<RequestRecord> beside;
  std::optional<RequestRecord> alone;
  bool interrupted = false;

  // Gaps of the streams between two of their tokens, in milliseconds. Before: within the time from
  // steady_s to the long prompt. During: those with a part of the time from then to its first
  // token, or to its end without one.
  std::vector<double> gaps_before_ms() const;
  std::vector<double> gaps_during_ms() const;
  // Streams that ended before the long prompt's first token.
  int64_t num_ended_early() const;
  // Why there is nothing to compare, if so.
  std::optional<RequestFailure> failure() const;
};

// Starts the streams; once each has had kTokensBefore tokens while all decoded, sends a long prompt
// for one token; ends the streams when each has had a token after that one; then sends another long
// prompt alone. `on_phase` hears what begins.
IsolationResult run_isolation(HttpCalls& calls, const IsolationPlan& plan, BenchPrompts& prompts,
                              const std::function<void(std::string_view)>& on_phase);

}  // namespace winnow
