// Scheduler: who runs next. A pure function of its state: no clock, no I/O, no model. It owns the
// tokens and pages of every request and the prefix cache's bookkeeping.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/request_id.h"
#include "engine/sequence.h"
#include "engine/step_plan.h"
#include "kv/prefix_cache.h"

namespace winnow {

struct SchedulerLimits {
  int32_t max_running = 64;
  int32_t max_waiting = 512;
  // Generated tokens of one request that a step reruns after a preemption, at most. With more than
  // one a plan has several steps of that request, one token each, in order.
  int32_t max_rerun_tokens = 1;
};

// How a request uses the prefix cache.
struct CacheUse {
  std::string scope = {};  // what besides tokens must be equal: tenant, rule
  bool read = true;        // false: only pages that the request itself has held before
  bool exact = true;       // law 4: only pages that a fresh run of this prompt would fill alike
};

struct ScheduledRequest {
  RequestId id = {};
  std::vector<TokenId> prompt;
  int64_t max_new_tokens = 0;  // prompt and answer fit the pool (see most_tokens)
  PromptMode mode = {};
  CacheUse cache = {};
};

enum class Admission { kQueued, kQueueFull, kNeverFits };

// A request as the scheduler sees it. Read-only for others.
struct ScheduledSequence {
  RequestId id = {};
  std::vector<TokenId> tokens;  // prompt and answer so far
  int32_t prompt_tokens = 0;
  int32_t computed_tokens = 0;  // with K and V in `pages`; the newest token never is
  int32_t cached_tokens = 0;    // of the prompt, taken from the cache before any preemption
  int32_t num_preemptions = 0;
  bool running = false;
  std::vector<PageId> pages;
};

// A page of a running request that was exchanged for an equal one filed earlier: what is known
// about the old page besides its K and V does not hold for the new one.
struct ExchangedPage {
  RequestId id = {};
  int32_t page_idx = 0;
};

// Rules:
//   - Every running request that decodes is in every step. The budget goes to prompts, shortest
//     remaining work first, with aging, so that none waits for ever.
//   - Prompt chunks end at multiples of kPageTokens or at the prompt's end; a step in which a
//   prompt
//     may run carries at least one page of it, whatever the budget.
//   - A waiting request is admitted when the pages of its prompt are there, and one to spare for
//     each running request. When pages run out, the youngest running request is preempted: an older
//     one never gives way to a younger one. One that was preempted comes back, before new ones are
//     admitted, when there is room for its answer to grow, which is asked for twice as much of with
//     each preemption, or alone.
//   - After a preemption prompt tokens run as prompt tokens and generated ones as generated ones,
//     a SequenceStep: the same bits as without it.
//   - A page is filed when the step that filled it is committed; not before. A request that filled
//     an equal page goes on with the one that was filed first.
//   - The page in which a prompt ends is filed with the prompt's tokens when these are computed. It
//     stays the request's own; who begins alike copies the tokens in common to a page of its own.
class Scheduler {
 public:
  // Both must outlive the scheduler.
  Scheduler(const SchedulerLimits& limits, PagePool& pool, PrefixCache& cache);
  ~Scheduler();

  // Prompt and answer of one request together, at most.
  int64_t most_tokens() const;
  // Requires prompt not empty, max_new_tokens >= 1, a new id.
  Admission submit(ScheduledRequest request);
  bool has_work() const;

  // The next step with at most `prompt_budget` prompt tokens (rounded up to a page).
  StepPlan plan(int32_t prompt_budget) const;
  // Takes the pages that the plan needs, and returns what is to be copied before it is run.
  // Requires the plan just made. Nothing if somebody else has taken them since: nothing has changed
  // then, and another plan is to be made.
  std::optional<std::vector<PageCopy>> begin(const StepPlan& plan);
  // results[i] belongs to plan.steps[i]; only the last of a request's may be `ended`. Requires
  // begin(plan).
  std::vector<ExchangedPage> commit(const StepPlan& plan, std::span<const StepResult> results);
  // The request is over, wherever it stands; none of that id: nothing happens. Not between begin
  // and commit.
  void end(RequestId id);

  // Null if there is none. Valid until the next non-const call.
  const ScheduledSequence* find(RequestId id) const;
  int64_t num_running() const;
  int64_t num_waiting() const;

  // free + cached + live = total; owners = holders; every sequence holds the pages of its tokens.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
