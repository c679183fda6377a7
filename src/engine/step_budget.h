// StepBudget: how many prompt tokens a step may carry, so that those who wait for their next token
// wait no longer than a target. Learns what steps cost from those that ran; has no clock.
#pragma once

#include <cstdint>
#include <optional>

namespace winnow {

class StepBudget {
 public:
  // At most `max_tokens` a step. Without a target it is twice a step that only generates, or such a
  // step and two pages of a prompt where that is longer.
  StepBudget(int32_t max_tokens, std::optional<double> target_s)
      : max_tokens_(max_tokens), target_s_(target_s) {}

  // For a step in which `num_generating` requests get a token: at least one page (two without a
  // target), since a prompt that got less would never end.
  int32_t prompt_tokens(int64_t num_generating) const;
  // A step took this long.
  void observe(int64_t prompt_tokens, int64_t num_generating, double seconds);

 private:
  int32_t max_tokens_;
  std::optional<double> target_s_;
  std::optional<double> generating_s_;  // a step without prompt tokens
  std::optional<double> per_token_s_;   // of a prompt
};

}  // namespace winnow
