#include "engine/step_budget.h"

#include <algorithm>

#include "tensor/kv_layout.h"

namespace winnow {
namespace {

// The newest step counts this much: a few steps outweigh what was before, one outlier does not.
constexpr double kNewest = 0.25;
// The weights' unpacking and the generated tokens cost a step as much as a page of a prompt does: a
// prompt beside eight streams takes 1.4 to 1.8 times its time alone by single pages, 1.1 to 1.4
// times by two (Qwen2.5-Coder-0.5B, AMX).
constexpr int32_t kDefaultFloor = 2 * kPageTokens;

void blend(std::optional<double>& mean, double value) {
  mean = mean ? *mean + kNewest * (value - *mean) : value;
}

}  // namespace

int32_t StepBudget::prompt_tokens(int64_t num_generating) const {
  if (num_generating == 0) return max_tokens_;
  const int32_t floor = std::min(target_s_ ? kPageTokens : kDefaultFloor, max_tokens_);
  if (!per_token_s_ || !generating_s_) return floor;
  const double room_s = target_s_.value_or(2 * *generating_s_) - *generating_s_;
  const double tokens = std::clamp(room_s / *per_token_s_, 0.0, static_cast<double>(max_tokens_));
  return std::max(floor, static_cast<int32_t>(tokens) / kPageTokens * kPageTokens);
}

void StepBudget::observe(int64_t prompt_tokens, int64_t num_generating, double seconds) {
  if (prompt_tokens == 0) {
    if (num_generating > 0) blend(generating_s_, seconds);
    return;
  }
  const double generating_s = num_generating > 0 ? generating_s_.value_or(0) : 0;
  const double prompt_s = std::max(seconds - generating_s, 0.1 * seconds);
  blend(per_token_s_, prompt_s / static_cast<double>(prompt_tokens));
}

}  // namespace winnow
