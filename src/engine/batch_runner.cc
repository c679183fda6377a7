#include "engine/batch_runner.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace winnow {

// One sequence's part of a step, while it runs.
struct BatchRunner::Part {
  const SequenceStep* step = nullptr;
  const ScheduledSequence* sequence = nullptr;
  BatchRequest* request = nullptr;
  StepOutcome* outcome = nullptr;
  SparseSequence sparse = {};
  int32_t num_logits = 0;
  int64_t first_row = 0;  // of the step's wanted rows

  bool is_prompt() const { return step->phase == Phase::kPrompt; }
  int32_t end() const { return step->begin + step->num_tokens; }
};

BatchRunner::BatchRunner(const Model& model, const KernelTable& kernels, int num_threads,
                         std::unique_ptr<KvStore> kv, std::optional<SparseProfile> profile)
    : model_(model),
      pool_(num_threads),
      decoder_(model, kernels),
      kv_(std::move(kv)),
      profile_(std::move(profile)),
      has_summaries_(static_cast<size_t>(kv_->num_pages())) {}

StepSequence BatchRunner::to_step_sequence(Part& part) {
  const SequenceStep& step = *part.step;
  BatchRequest& request = *part.request;
  StepSequence result{
      .tokens = std::span(part.sequence->tokens)
                    .subspan(static_cast<size_t>(step.begin), static_cast<size_t>(step.num_tokens)),
      .begin = step.begin,
      .pages = part.sequence->pages,
      .phase = step.phase,
      .num_logits = part.num_logits};
  result.stats = part.is_prompt() ? &request.attention : &request.answer_attention;
  const PromptMode& mode = request.mode;
  if (part.is_prompt() ? mode.has_sparse_rows() : mode.sparse_answer) {
    part.sparse = {.rule = &*mode.rule,
                   .end = mode.sparse_end,
                   .summaries = &request.summaries,
                   .profile = profile_ ? &*profile_ : nullptr,
                   .observer = part.is_prompt() ? request.request.observer : nullptr};
    result.sparse = &part.sparse;
  }
  return result;
}

std::vector<StepOutcome> BatchRunner::run(const StepPlan& plan, const Scheduler& scheduler,
                                          FindRequest find_request) {
  std::vector<StepOutcome> outcomes(plan.steps.size());
  std::vector<Part> parts(plan.steps.size());
  std::vector<StepSequence> step;
  int64_t num_rows = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    part.step = &plan.steps[i];
    part.sequence = scheduler.find(part.step->id);
    CHECK(part.sequence != nullptr);
    part.request = &find_request(part.step->id);
    part.outcome = &outcomes[i];
    const bool scores_all = part.is_prompt() && part.request->request.score_prompt;
    part.num_logits = scores_all ? part.step->num_tokens : (part.step->wants_token ? 1 : 0);
    if (scores_all) {
      part.outcome->prompt_scores.resize(
          static_cast<size_t>(part.step->num_tokens - (part.step->wants_token ? 1 : 0)));
    }
    part.first_row = num_rows;
    num_rows += part.num_logits;
    // Pages that this step begins to fill hold what another sequence left.
    for (int32_t page = (part.step->begin + kPageTokens - 1) / kPageTokens;
         page * kPageTokens < part.end(); ++page) {
      has_summaries_[static_cast<size_t>(part.sequence->pages[static_cast<size_t>(page)])] = false;
    }
    step.push_back(to_step_sequence(part));
  }
  decoder_.run_step(step, *kv_, pool_, [&](const LogitRows& rows) { score_rows(parts, rows); });
  note_summaries(parts);
  return outcomes;
}

namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The logits to draw from: those of the model, without the tokens that may not come next.
std::span<const float> allowed_logits(BatchRequest& request, std::span<const float> logits) {
  const bool too_short = request.generated_tokens < request.request.min_new_tokens;
  if (request.request.constraint == nullptr && !too_short) return logits;
  request.adjusted_logits.assign(logits.begin(), logits.end());
  if (too_short) {
    for (const TokenId end : request.request.end_tokens) {
      const bool known = end >= 0 && end < std::ssize(logits);
      if (known) request.adjusted_logits[static_cast<size_t>(end)] = kNever;
    }
  }
  if (request.request.constraint != nullptr) {
    request.request.constraint->mask(request.adjusted_logits);
  }
  return request.adjusted_logits;
}

Result<ScoredToken> choose(BatchRequest& request, std::span<const float> logits) {
  TRY(const TokenId token, request.sampler.sample(allowed_logits(request, logits)));
  if (!request.request.score_tokens) return ScoredToken{.token = token};
  return RowSoftmax(logits).score(token, request.request.num_top_logprobs);
}

}  // namespace

void BatchRunner::score_rows(std::span<Part> parts, const LogitRows& rows) {
  const auto vocab_size = static_cast<size_t>(model_.config().vocab_size);
  struct Row {
    Part* part = nullptr;
    std::span<const float> logits;
    ScoredToken* prompt_score = nullptr;  // null: a row whose token is wanted
    TokenId prompt_token = 0;
  };
  std::vector<Row> work;
  for (Part& part : parts) {
    const int64_t first = std::max(rows.row_idx, part.first_row);
    const int64_t last = std::min(rows.row_idx + rows.num_rows, part.first_row + part.num_logits);
    for (int64_t row_idx = first; row_idx < last; ++row_idx) {
      const auto offset = static_cast<size_t>(row_idx - rows.row_idx) * vocab_size;
      Row row{.part = &part, .logits = {rows.values + offset, vocab_size}};
      const int64_t position = part.end() - part.num_logits + (row_idx - part.first_row);
      if (position + 1 < part.end() || !part.step->wants_token) {
        row.prompt_score =
            &part.outcome->prompt_scores[static_cast<size_t>(position - part.step->begin)];
        row.prompt_token = part.sequence->tokens[static_cast<size_t>(position + 1)];
      }
      work.push_back(row);
    }
  }
  pool_.run(std::ssize(work), [&](int64_t i, int) {
    const Row& row = work[static_cast<size_t>(i)];
    if (row.prompt_score == nullptr) {
      row.part->outcome->next = choose(*row.part->request, row.logits);
    } else {
      *row.prompt_score =
          RowSoftmax(row.logits)
              .score(row.prompt_token, row.part->request->request.num_prompt_top_logprobs);
    }
  });
}

void BatchRunner::note_summaries(std::span<const Part> parts) {
  for (const Part& part : parts) {
    const int32_t num_pages = part.request->summaries.num_pages();
    for (int32_t i = 0; i < num_pages; ++i) {
      has_summaries_[static_cast<size_t>(part.sequence->pages[static_cast<size_t>(i)])] = true;
    }
  }
}

void BatchRunner::copy(const PageCopy& copy) {
  kv_->copy_tokens(copy.from, copy.to, copy.num_tokens);
  set_summaries(copy.to, false);
}

void BatchRunner::exchanged(BatchRequest& request, int32_t page_idx) {
  request.summaries.truncate(int64_t{page_idx} * kPageTokens);
}

void BatchRunner::restarted(BatchRequest& request, std::span<const PageId> cached_pages) {
  request.summaries.truncate(0);
  if (!request.mode.uses_summaries()) return;
  const auto first_without = std::find_if(cached_pages.begin(), cached_pages.end(), [&](PageId id) {
    return !has_summaries_[static_cast<size_t>(id)];
  });
  request.summaries.adopt(static_cast<int32_t>(first_without - cached_pages.begin()));
}

}  // namespace winnow
