// StepPlan: what one step computes, as numbers. Made by the scheduler, run by whoever has a model.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "engine/request_id.h"

namespace winnow {

// Tokens [begin, begin + num_tokens) of a request get their K and V.
struct SequenceStep {
  RequestId id = {};
  int32_t begin = 0;
  int32_t num_tokens = 0;
  Phase phase = Phase::kPrompt;  // kGenerate: one token
  // Its last token is the newest: the next one is to be chosen.
  bool wants_token = false;
};

// A waiting request starts, or goes on after a preemption: then its answer may be cached, too.
struct PlannedAdmission {
  RequestId id = {};
  int32_t cached_tokens = 0;  // those behind the last whole page are copied
};

// A running prompt goes on behind pages that another request has filed meanwhile. What was known
// about its own pages there does not hold for them.
struct PlannedAdoption {
  RequestId id = {};
  int32_t computed_tokens = 0;  // from now on; those behind the last whole page are copied
};

// The first tokens of a page are to be copied to another, which has one owner. The first page may
// have others, who fill it behind these tokens.
struct PageCopy {
  PageId from = {};
  PageId to = {};
  int32_t num_tokens = 0;
};

struct StepPlan {
  std::vector<RequestId> preempted;  // give their pages back and wait again
  std::vector<PlannedAdmission> admitted;
  std::vector<PlannedAdoption> adopted;
  std::vector<SequenceStep> steps;  // prompts before generated tokens

  // An adoption always comes with a step.
  bool empty() const { return steps.empty() && preempted.empty() && admitted.empty(); }
};

// What became of one SequenceStep.
struct StepResult {
  std::optional<TokenId> next_token;  // where one was wanted, unless the request has ended
  bool ended = false;                 // for whatever reason: its pages are given back
};

}  // namespace winnow
