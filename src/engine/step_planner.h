// StepPlanner: makes one StepPlan from the scheduler's state, which it only reads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/function_ref.h"
#include "engine/page_budget.h"
#include "engine/prefix_match.h"
#include "engine/request_table.h"
#include "engine/step_plan.h"

namespace winnow {

class StepPlanner {
 public:
  StepPlanner(const SchedulerLimits& limits, const RequestTable& requests, const PagePool& pool,
              const PrefixCache& cache, int32_t prompt_budget);

  StepPlan plan();

 private:
  void plan_decodes();
  void preempt_youngest();
  void plan_interrupted();
  void plan_prompts();
  // False: no room in the budget, or no pages.
  bool try_resume(const RequestEntry& entry);
  bool try_admit(const RequestEntry& entry);
  bool try_go_on(const RequestEntry& entry);
  bool room_to_run() const;
  // What serves it, without copied tokens where their page would take the last room; none if there
  // is no room for `pages_needed` of the tokens that serve.
  std::optional<PrefixMatch> match_with_room(const RequestEntry& entry,
                                             FunctionRef<int64_t(int32_t)> pages_needed) const;
  // Where a chunk from `begin` ends within what is left of the budget; `begin` if there is no room.
  int32_t chunk_end(const RequestEntry& entry, int32_t begin) const;
  // Where the steps of a request that has left its prompt end.
  int32_t decode_end(const RequestEntry& entry, int32_t computed) const;
  // Pages that a request holds in a step that starts at `computed`.
  int64_t pages_in_step(const RequestEntry& entry, int32_t computed) const;
  void admit(const RequestEntry& entry, const PrefixMatch& match);
  // What a request does of which `computed` tokens are done.
  void add_steps(const RequestEntry& entry, int32_t computed);

  const SchedulerLimits& limits_;
  const RequestTable& requests_;
  const PrefixCache& cache_;
  PageBudget pages_;
  int64_t prompt_tokens_left_;
  size_t num_kept_;  // of the running requests; those behind are preempted
  bool admitting_ = true;
  StepPlan plan_;
  std::vector<SequenceStep> decodes_;
};

}  // namespace winnow
