// SimSettings: what one seed makes of a simulation: its limits, and requests without end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduler.h"
#include "sim/dice.h"

namespace winnow::sim {

struct SimSettings {
  int64_t num_pages = 0;
  SchedulerLimits limits;
  int hash_bits = 64;
  std::optional<int32_t> budget;  // none: another one in every step
  int64_t num_requests = 0;
  int64_t arrival_steps = 1;   // a request comes in one of so many steps
  int64_t cancel_steps = 0;    // one is cancelled in one of so many; 0 = never
  int64_t longest_prompt = 0;  // pages
  int64_t longest_answer = 0;  // tokens
  std::vector<std::optional<SparseRule>> scopes;

  static SimSettings of(Dice& dice);
};

struct SimRequest {
  ScheduledRequest request;
  int16_t scope = 0;
  int64_t answer_tokens = 0;  // after which it ends; at most request.max_new_tokens
};

// Prompts that share their beginnings, with each other and with earlier answers.
class RequestSource {
 public:
  RequestSource(const SimSettings& settings, Dice& dice);

  SimRequest next(RequestId id);
  // These were the tokens of a request that has ended.
  void add_text(const std::vector<TokenId>& tokens);

 private:
  std::vector<TokenId> prompt();
  void append_random(std::vector<TokenId>& tokens, int64_t num_tokens);
  int64_t prompt_tokens();

  const SimSettings& settings_;
  Dice& dice_;
  std::vector<std::vector<TokenId>> texts_;
};

}  // namespace winnow::sim
