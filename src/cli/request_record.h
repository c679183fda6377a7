// RequestRecord: what one streamed request told, and the latencies that follow from it by vLLM's
// definitions. Times are seconds on the clock of the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace winnow {

struct RequestFailure {
  std::string kind;  // what failures are counted by: "connect", "timeout", "HTTP 503"
  std::string message;
};

struct RequestRecord {
  int64_t asked_prompt_tokens = 0;
  double sent_s = 0;                   // before the connection is made
  std::vector<double> chunk_s = {};    // arrival of each chunk that carries a token, in order
  std::optional<double> ended_s = {};  // none while it runs
  std::optional<int64_t> prompt_tokens = {};  // of the server's usage, as the next two
  std::optional<int64_t> cached_tokens = {};
  std::optional<int64_t> completion_tokens = {};
  std::optional<RequestFailure> failure = {};

  bool completed() const { return ended_s && !failure && !chunk_s.empty(); }
  // By usage; without it, one token per chunk.
  int64_t output_tokens() const {
    return completion_tokens.value_or(static_cast<int64_t>(chunk_s.size()));
  }
  int64_t input_tokens() const { return prompt_tokens.value_or(asked_prompt_tokens); }

  // These require a chunk.
  double ttft_s() const { return chunk_s.front() - sent_s; }
  double e2el_s() const { return chunk_s.back() - sent_s; }
  // None for an answer of a single token.
  std::optional<double> tpot_s() const {
    const int64_t tokens = output_tokens();
    if (tokens <= 1) return std::nullopt;
    return (e2el_s() - ttft_s()) / static_cast<double>(tokens - 1);
  }
};

}  // namespace winnow
