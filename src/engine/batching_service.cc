#include "engine/batching_service.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/batch_runner.h"
#include "engine/cache_scope.h"
#include "engine/cost_model.h"
#include "engine/kv_capacity.h"
#include "engine/prompt_check.h"
#include "engine/saved_prefixes.h"
#include "engine/step_budget.h"

namespace winnow {
namespace {

using RequestMap = std::map<RequestId, std::unique_ptr<BatchRequest>>;

int32_t most_at_hand(const SchedulerLimits& limits) {
  return limits.max_running + limits.max_waiting;
}

// Whether the queue is full is decided before a request reaches the scheduler, by all at hand.
SchedulerLimits scheduler_limits(SchedulerLimits limits) {
  limits.max_waiting = most_at_hand(limits);
  return limits;
}

Status check_save(const PrefixFolder* folder, const PrefixName& name, int64_t prompt_tokens) {
  if (folder == nullptr) return no_prefix_folder();
  if (prompt_tokens < kPageTokens) {
    return fail(ErrorCode::kInvalidArgument,
                "prompt: expected at least %d tokens, since whole pages are saved, found %lld",
                kPageTokens, static_cast<long long>(prompt_tokens));
  }
  return check_prefix_name(name.name);
}

uint64_t random_key() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

class BatchingService final : public GenerationService {
 public:
  BatchingService(std::shared_ptr<const Model> model, const KernelTable& kernels,
                  int64_t context_tokens, std::unique_ptr<KvStore> kv, BatchingOptions options);
  ~BatchingService() override;

  const Model& model() const override { return *model_; }
  int64_t context_tokens() const override { return context_tokens_; }
  Result<RequestId> submit(ServiceRequest request,
                           std::shared_ptr<GenerationListener> listener) override;
  void cancel(RequestId id) override;
  ServiceStatus status() const override;
  void drain() override;

 private:
  // What other threads leave for the engine's.
  struct Inbox {
    std::vector<std::unique_ptr<BatchRequest>> submitted;
    std::vector<RequestId> cancelled;
    std::vector<std::function<void()>> tasks;
    bool stopping = false;
  };

  void run();
  bool take_inbox();  // waits while there is nothing to do; false when the service stops
  void admit(std::unique_ptr<BatchRequest> request);
  void schedule(ScheduledRequest scheduled);
  void end_step(RequestId id, RequestEnd end);
  void step();
  void start_parts(const StepPlan& plan);
  bool take_outcome(BatchRequest& request, const SequenceStep& step, StepOutcome& outcome,
                    StepResult& result);
  void tell_prompt_scores(BatchRequest& request, const SequenceStep& step,
                          std::vector<ScoredToken>& scores);
  void tell_progress(BatchRequest& request, const SequenceStep& step);
  void finish(RequestId id, RequestEnd end);
  void fail_all(const Error& error);
  void publish();

  const std::shared_ptr<const Model> model_;
  const int64_t context_tokens_;
  const BatchingOptions options_;

  // The engine's thread only.
  PrefillCost cost_;
  BatchRunner runner_;
  PrefixCache cache_;
  Scheduler scheduler_;
  StepBudget budget_;
  RequestMap requests_;
  std::map<RequestId, ScheduledRequest> loading_;        // wait for saved pages
  std::vector<std::pair<RequestId, RequestEnd>> ended_;  // in this step
  int64_t num_generating_ = 0;                           // in the last step
  ServiceStatus counts_;                                 // what only grows

  // Shared.
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Inbox inbox_;
  uint64_t last_id_ = 0;
  int64_t num_unfinished_ = 0;  // submitted and not ended
  bool draining_ = false;
  bool failed_ = false;
  ServiceStatus published_;
  int64_t num_unpublished_ = 0;    // submitted and not yet in published_
  std::optional<Stopwatch> busy_;  // since the last step ended, while there is work

  std::optional<SavedPrefixes> saved_prefixes_;  // the engine's thread only; none without a folder
  std::thread thread_;
};

BatchingService::BatchingService(std::shared_ptr<const Model> model, const KernelTable& kernels,
                                 int64_t context_tokens, std::unique_ptr<KvStore> kv,
                                 BatchingOptions options)
    : model_(std::move(model)),
      context_tokens_(context_tokens),
      options_(std::move(options)),
      cost_(model_->config()),
      runner_(*model_, kernels, options_.engine.num_threads, std::move(kv), options_.profile),
      cache_(runner_.kv().pool(), random_key()),
      scheduler_(scheduler_limits(options_.limits), runner_.kv().pool(), cache_),
      budget_(options_.engine.chunk_tokens, options_.step_target_s) {
  if (options_.folder != nullptr) {
    saved_prefixes_.emplace(*options_.folder, cache_, runner_, options_.profile,
                            options_.saved_bytes_at_once, [this](SavedPrefixes::Task task) {
                              const std::lock_guard lock(mutex_);
                              inbox_.tasks.push_back(std::move(task));
                              wake_.notify_one();
                            });
  }
  publish();
  thread_ = std::thread([this] { run(); });
}

BatchingService::~BatchingService() {
  {
    const std::lock_guard lock(mutex_);
    inbox_.stopping = true;
  }
  wake_.notify_one();
  thread_.join();
}

Result<RequestId> BatchingService::submit(ServiceRequest request,
                                          std::shared_ptr<GenerationListener> listener) {
  const auto num_tokens = std::ssize(request.prompt);
  TRY_STATUS(check_prompt(*model_, context_tokens_, context_tokens_ - 1, request.prompt));
  TRY_STATUS(validate(request.sampling, model_->config().vocab_size));
  if (request.score_prompt) request.read_cache = false;
  if (request.save_as) {
    TRY_STATUS(check_save(options_.folder, *request.save_as, num_tokens));
    request.max_new_tokens = 0;
    request.reuse = PrefixReuse::kExact;
  }
  const int64_t room = context_tokens_ - num_tokens;
  const auto num_layers = static_cast<int>(model_->config().layers.size());
  auto made = std::make_unique<BatchRequest>(RequestId{}, std::move(request), std::move(listener),
                                             room, num_layers);
  const std::lock_guard lock(mutex_);
  if (failed_) return fail(ErrorCode::kShuttingDown, "the engine has stopped after an error");
  if (draining_ || inbox_.stopping) {
    return fail(ErrorCode::kShuttingDown, "shutting down; no more requests are taken");
  }
  if (num_unfinished_ >= most_at_hand(options_.limits)) {
    return fail(ErrorCode::kOverloaded, "the queue is full: %lld requests are at hand",
                static_cast<long long>(num_unfinished_));
  }
  made->id = RequestId{++last_id_};
  ++num_unfinished_;
  if (!busy_) busy_.emplace();
  const RequestId id = made->id;
  inbox_.submitted.push_back(std::move(made));
  ++num_unpublished_;
  wake_.notify_one();
  return id;
}

void BatchingService::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  inbox_.cancelled.push_back(id);
  wake_.notify_one();
}

void BatchingService::drain() {
  const std::lock_guard lock(mutex_);
  draining_ = true;
}

ServiceStatus BatchingService::status() const {
  const std::lock_guard lock(mutex_);
  ServiceStatus status = published_;
  status.num_waiting += num_unpublished_;
  status.seconds_in_step = busy_ ? busy_->seconds() : 0;
  status.failed = failed_;
  for (const auto& request : inbox_.submitted) {
    status.requests.push_back({.id = request->id,
                               .prompt_tokens = request->prompt_tokens,
                               .age_s = request->since_submit.seconds()});
  }
  return status;
}

void BatchingService::run() {
  try {
    while (take_inbox()) step();
    for (const auto& [id, request] : requests_) scheduler_.end(id);
    while (!requests_.empty()) {
      finish(requests_.begin()->first, {.finish = FinishReason::kCancelled});
    }
  } catch (const std::exception& error) {
    fail_all(fail(ErrorCode::kInternal, "the engine has stopped: %s", error.what()));
  }
}

bool BatchingService::take_inbox() {
  Inbox inbox;
  {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] {
      return inbox_.stopping || !inbox_.submitted.empty() || !inbox_.cancelled.empty() ||
             !inbox_.tasks.empty() || scheduler_.has_work();
    });
    inbox.stopping = inbox_.stopping;
    std::swap(inbox.submitted, inbox_.submitted);
    std::swap(inbox.cancelled, inbox_.cancelled);
    std::swap(inbox.tasks, inbox_.tasks);
  }
  for (const auto& task : inbox.tasks) task();
  for (auto& request : inbox.submitted) admit(std::move(request));
  for (const RequestId id : inbox.cancelled) {
    if (!requests_.contains(id)) continue;
    scheduler_.end(id);
    loading_.erase(id);
    if (saved_prefixes_) saved_prefixes_->cancel_save(id);
    finish(id, {.finish = FinishReason::kCancelled});
  }
  if (!inbox.submitted.empty() || !inbox.tasks.empty()) publish();
  return !inbox.stopping;
}

void BatchingService::admit(std::unique_ptr<BatchRequest> request) {
  const std::string tenant = request->request.cache_scope;
  if (request->request.save_as) request->saved_prompt = request->request.prompt;
  ScheduledRequest scheduled{.id = request->id,
                             .prompt = std::move(request->request.prompt),
                             .max_new_tokens = std::max<int64_t>(1, request->most_new_tokens),
                             .mode = request->mode,
                             .cache = {.read = request->request.read_cache,
                                       .exact = request->request.reuse == PrefixReuse::kExact}};
  scheduled.cache.scope = cache_scope(tenant, request->mode, scheduled.prompt);
  counts_.prefix_queried_tokens += request->prompt_tokens;
  const RequestId id = request->id;
  requests_.emplace(id, std::move(request));
  const auto loaded = [this, id] {
    if (auto waiting = loading_.extract(id)) schedule(std::move(waiting.mapped()));
  };
  if (saved_prefixes_ && scheduled.cache.read && saved_prefixes_->load(scheduled, tenant, loaded)) {
    loading_.emplace(id, std::move(scheduled));
  } else {
    schedule(std::move(scheduled));
  }
}

void BatchingService::schedule(ScheduledRequest scheduled) {
  const Admission admission = scheduler_.submit(std::move(scheduled));
  // submit() has checked both the room and the number of requests at hand.
  CHECK(admission == Admission::kQueued);
}

void BatchingService::step() {
  const StepPlan plan = scheduler_.plan(budget_.prompt_tokens(num_generating_));
  if (!plan.empty()) {
    const Stopwatch watch;
    const std::optional<std::vector<PageCopy>> copies = scheduler_.begin(plan);
    CHECK(copies.has_value());
    for (const PageCopy& copy : *copies) runner_.copy(copy);
    start_parts(plan);
    // A step may last for seconds; whoever asks meanwhile is told who runs in it.
    if (!plan.admitted.empty()) publish();
    const auto find_request = [&](RequestId id) -> BatchRequest& { return *requests_.at(id); };
    std::vector<StepOutcome> outcomes = runner_.run(plan, scheduler_, find_request);
    std::vector<StepResult> results(plan.steps.size());
    StepReport report;
    for (size_t i = 0; i < results.size(); ++i) {
      const SequenceStep& step = plan.steps[i];
      BatchRequest& request = find_request(step.id);
      results[i].ended = !take_outcome(request, step, outcomes[i], results[i]);
      (step.phase == Phase::kPrompt ? report.prompt_tokens : report.generated_tokens) +=
          step.num_tokens;
    }
    for (const ExchangedPage& page : scheduler_.commit(plan, results)) {
      if (const auto found = requests_.find(page.id); found != requests_.end()) {
        runner_.exchanged(*found->second, page.page_idx);
      }
    }
    report.seconds = watch.seconds();
    num_generating_ = report.generated_tokens;
    budget_.observe(report.prompt_tokens, report.generated_tokens, report.seconds);
    ++counts_.num_steps;
    if (options_.on_step) options_.on_step(report);
  }
  for (auto& [id, end] : std::exchange(ended_, {})) end_step(id, std::move(end));
  publish();
}

// The request is gone from the scheduler; its prompt may still have to be written.
void BatchingService::end_step(RequestId id, RequestEnd end) {
  BatchRequest& request = *requests_.at(id);
  if (!request.request.save_as || end.error) return finish(id, std::move(end));
  saved_prefixes_->save({.id = id,
                         .name = *request.request.save_as,
                         .tenant = request.request.cache_scope,
                         .mode = request.mode,
                         .prompt = std::move(request.saved_prompt),
                         .done = [this, id, end](Result<PrefixInfo> saved) mutable {
                           if (saved.ok()) {
                             end.saved = std::move(saved).value();
                           } else {
                             end.error = std::move(saved).error();
                           }
                           finish(id, std::move(end));
                         }});
}

// Counts what the plan changes, and where each part of it begins.
void BatchingService::start_parts(const StepPlan& plan) {
  for (const RequestId id : plan.preempted) {
    BatchRequest& request = *requests_.at(id);
    ++request.num_preemptions;
    ++counts_.num_preemptions;
    runner_.restarted(request, {});
  }
  for (const PlannedAdmission& admission : plan.admitted) {
    BatchRequest& request = *requests_.at(admission.id);
    const ScheduledSequence& sequence = *scheduler_.find(admission.id);
    const auto cached_pages = static_cast<size_t>(admission.cached_tokens / kPageTokens);
    runner_.restarted(request, std::span(sequence.pages).first(cached_pages));
    if (!request.first_step_s) request.first_step_s = request.since_submit.seconds();
  }
  for (const SequenceStep& step : plan.steps) {
    BatchRequest& request = *requests_.at(step.id);
    const int64_t cached = scheduler_.find(step.id)->cached_tokens;
    counts_.prefix_hit_tokens += cached - request.cached_tokens;
    request.cached_tokens = cached;
  }
}

// False if the request is over; then `ended_` says how.
bool BatchingService::take_outcome(BatchRequest& request, const SequenceStep& step,
                                   StepOutcome& outcome, StepResult& result) {
  const auto end = [&](RequestEnd how) {
    ended_.emplace_back(request.id, std::move(how));
    return false;
  };
  if (step.phase == Phase::kPrompt) {
    tell_prompt_scores(request, step, outcome.prompt_scores);
    tell_progress(request, step);
  }
  if (!outcome.next) return true;
  if (request.most_new_tokens == 0) return end({.finish = FinishReason::kMaxTokens});
  if (!outcome.next->ok()) return end({.error = outcome.next->error()});
  const ScoredToken& token = outcome.next->value();
  request.last_token_s = request.since_submit.seconds();
  if (!request.first_token_s) request.first_token_s = request.last_token_s;
  ++request.generated_tokens;
  const std::vector<TokenId>& ends = request.request.end_tokens;
  if (std::find(ends.begin(), ends.end(), token.token) != ends.end()) {
    return end({.finish = FinishReason::kEndToken, .end_token = token.token});
  }
  if (!request.listener->on_token(token)) return end({.finish = FinishReason::kStopped});
  if (request.generated_tokens >= request.most_new_tokens) {
    return end({.finish = request.clipped ? FinishReason::kContextFull : FinishReason::kMaxTokens});
  }
  if (request.request.constraint != nullptr) request.request.constraint->accept(token.token);
  result.next_token = token.token;
  return true;
}

void BatchingService::tell_prompt_scores(BatchRequest& request, const SequenceStep& step,
                                         std::vector<ScoredToken>& scores) {
  if (!request.request.score_prompt) return;
  if (request.scored_tokens == 0) {
    const ScoredToken first{.token = scheduler_.find(request.id)->tokens.front()};
    request.listener->on_prompt_scores({&first, 1});
    request.scored_tokens = 1;
  }
  // After a preemption the same rows come again.
  const int64_t first_token = step.begin + 1;
  const int64_t end_token = std::min(first_token + std::ssize(scores), request.prompt_tokens);
  if (end_token <= request.scored_tokens) return;
  const auto told = static_cast<size_t>(request.scored_tokens - first_token);
  request.listener->on_prompt_scores(
      std::span(scores).subspan(told, static_cast<size_t>(end_token - request.scored_tokens)));
  request.scored_tokens = end_token;
}

void BatchingService::tell_progress(BatchRequest& request, const SequenceStep& step) {
  const int64_t done = step.begin + step.num_tokens;
  if (done <= request.processed_tokens) return;
  request.processed_tokens = done;
  const double elapsed_s = request.since_submit.seconds() - request.first_step_s.value_or(0);
  const int64_t cached = request.cached_tokens;
  const double eta_s = cost_.eta_s(elapsed_s, cached, done, request.prompt_tokens,
                                   request.attention.effective_density());
  request.listener->on_prefill({.done = done,
                                .reused = cached,
                                .total = request.prompt_tokens,
                                .elapsed_s = elapsed_s,
                                .eta_s = eta_s,
                                .attention = request.attention});
}

// The request is gone from the scheduler already.
void BatchingService::finish(RequestId id, RequestEnd end) {
  const auto found = requests_.find(id);
  const std::unique_ptr<BatchRequest> request = std::move(found->second);
  requests_.erase(found);
  {
    const std::lock_guard lock(mutex_);
    --num_unfinished_;
  }
  end.prompt_tokens = request->prompt_tokens;
  end.cached_tokens = request->cached_tokens;
  end.generated_tokens = request->generated_tokens;
  end.num_preemptions = request->num_preemptions;
  const double now_s = request->since_submit.seconds();
  end.queue_s = request->first_step_s.value_or(now_s);
  end.prompt_s = request->first_token_s.value_or(now_s) - end.queue_s;
  end.decode_s = request->first_token_s ? request->last_token_s - *request->first_token_s : 0;
  end.attention = request->attention;
  end.answer_attention = request->answer_attention;
  request->listener->on_end(end);
}

void BatchingService::fail_all(const Error& error) {
  Inbox inbox;
  {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    std::swap(inbox.submitted, inbox_.submitted);
    num_unpublished_ = 0;
  }
  for (auto& request : inbox.submitted) {
    const RequestId id = request->id;
    requests_.emplace(id, std::move(request));
  }
  while (!requests_.empty()) finish(requests_.begin()->first, {.error = error});
}

void BatchingService::publish() {
  ServiceStatus status = counts_;
  const PagePool& pool = runner_.kv().pool();
  status.pages.total = pool.num_pages();
  status.pages.free = pool.num_free();
  status.pages.cached = cache_.num_evictable();
  status.pages.live = status.pages.total - status.pages.free - status.pages.cached;
  status.num_running = scheduler_.num_running();
  status.num_waiting = scheduler_.num_waiting() + std::ssize(loading_);
  if (saved_prefixes_) status.prefix_loaded_tokens = saved_prefixes_->num_loaded_tokens();
  status.max_running = options_.limits.max_running;
  status.max_waiting = options_.limits.max_waiting;
  for (const auto& [id, request] : requests_) {
    const ScheduledSequence* sequence = scheduler_.find(id);
    RequestStatus state{.id = id,
                        .prompt_tokens = request->prompt_tokens,
                        .processed_tokens = request->processed_tokens,
                        .cached_tokens = request->cached_tokens,
                        .generated_tokens = request->generated_tokens,
                        .age_s = request->since_submit.seconds()};
    if (sequence != nullptr && sequence->running && request->first_step_s) {
      const bool decoding = request->first_token_s.has_value();
      state.phase = decoding ? RequestPhase::kDecode : RequestPhase::kPrompt;
      const double since_s =
          state.age_s - (decoding ? *request->first_token_s : *request->first_step_s);
      const int64_t count = decoding ? request->generated_tokens - 1
                                     : request->processed_tokens - request->cached_tokens;
      if (since_s > 0) {
        state.tokens_per_s = static_cast<double>(std::max<int64_t>(0, count)) / since_s;
      }
      if (!decoding) {
        state.eta_s = cost_.eta_s(since_s, request->cached_tokens, request->processed_tokens,
                                  request->prompt_tokens, request->attention.effective_density());
      }
    }
    status.requests.push_back(state);
  }
  const std::lock_guard lock(mutex_);
  published_ = std::move(status);
  num_unpublished_ = std::ssize(inbox_.submitted);
  if (scheduler_.has_work() || !inbox_.submitted.empty()) {
    busy_.emplace();
  } else {
    busy_.reset();
  }
}

}  // namespace

Result<std::unique_ptr<GenerationService>> create_batching_service(
    std::shared_ptr<const Model> model, BatchingOptions options) {
  const ModelConfig& config = model->config();
  EngineOptions& engine = options.engine;
  TRY_STATUS(check_options(engine, config));
  if (engine.kernels == nullptr) {
    TRY(engine.kernels, select_kernels(""));
  }
  if (engine.num_threads == 0) engine.num_threads = usable_threads();
  const std::vector<KvLayout> layouts = kv_layouts(config, engine.kv_dtype);
  const int64_t context =
      engine.context_tokens == 0 ? config.context_tokens : engine.context_tokens;
  StepSize step{.context_tokens = context, .num_threads = engine.num_threads};
  step.num_rows = choose_chunk_tokens(engine.chunk_tokens, config, *engine.kernels, step);
  engine.chunk_tokens = static_cast<int>(step.num_rows);
  TRY(const int64_t kv_tokens,
      choose_kv_tokens({.tokens = options.kv_tokens,
                        .most = kDefaultContexts * context,
                        .page_bytes = bytes_per_page(layouts),
                        .step_bytes = step_bytes(config, *engine.kernels, step)},
                       *model));
  TRY(std::unique_ptr<KvStore> kv, KvStore::create(layouts, pages_for(kv_tokens)));
  const int64_t context_tokens = std::min(context, pages_for(kv_tokens) * kPageTokens);
  return std::unique_ptr<GenerationService>(std::make_unique<BatchingService>(
      std::move(model), *engine.kernels, context_tokens, std::move(kv), std::move(options)));
}

}  // namespace winnow
