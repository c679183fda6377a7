// BatchRunner: computes the steps that a scheduler plans. Owns the model's KV memory and threads;
// takes no decision about who runs.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "attention/sparse_profile.h"
#include "base/function_ref.h"
#include "base/thread_pool.h"
#include "engine/batch_request.h"
#include "engine/scheduler.h"
#include "kv/kv_store.h"
#include "model/decoder.h"

namespace winnow {

// What the model said about one sequence of a step.
struct StepOutcome {
  // Where a token was wanted: the next one, or why there is none.
  std::optional<Result<ScoredToken>> next = {};
  std::vector<ScoredToken> prompt_scores = {};  // of the prompt tokens that its rows predict
};

class BatchRunner {
 public:
  // `model` and `kernels` must outlive the runner.
  BatchRunner(const Model& model, const KernelTable& kernels, int num_threads,
              std::unique_ptr<KvStore> kv, std::optional<SparseProfile> profile);

  KvStore& kv() { return *kv_; }
  // Whether the page's block summaries are written.
  bool has_summaries(PageId page) const { return has_summaries_[static_cast<size_t>(page)]; }
  // A page was filled without a step.
  void set_summaries(PageId page, bool written) {
    has_summaries_[static_cast<size_t>(page)] = written;
  }

  // Before the step in which the tokens behind them are written.
  void copy(const PageCopy& copy);

  using FindRequest = FunctionRef<BatchRequest&(RequestId)>;
  // outcomes[i] belongs to plan.steps[i]. Requires scheduler.begin(plan).
  std::vector<StepOutcome> run(const StepPlan& plan, const Scheduler& scheduler,
                               FindRequest find_request);
  // A page that the request held was exchanged.
  void exchanged(BatchRequest& request, int32_t page_idx);
  // The request starts on pages from the cache, or has lost its own.
  void restarted(BatchRequest& request, std::span<const PageId> cached_pages);

 private:
  struct Part;
  StepSequence to_step_sequence(Part& part);
  void score_rows(std::span<Part> parts, const LogitRows& rows);
  void note_summaries(std::span<const Part> parts);

  const Model& model_;
  ThreadPool pool_;
  Decoder decoder_;
  std::unique_ptr<KvStore> kv_;
  std::optional<SparseProfile> profile_;
  // [num_pages]: written by a sequence that uses them since the page was last filled.
  std::vector<bool> has_summaries_;
};

}  // namespace winnow
