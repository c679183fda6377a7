#include "cli/answer_batch.h"

#include <condition_variable>
#include <mutex>

#include "base/check.h"
#include "base/stopwatch.h"
#include "cli/interrupt.h"
#include "engine/batching_service.h"
#include "kv/kv_store.h"

namespace winnow {
namespace {

// Times the steps of one run. Called by the engine's thread, waited for by another.
class StepTimer {
 public:
  explicit StepTimer(const AnswerBatchShape& shape) : shape_(shape) {}

  void start() {
    const std::lock_guard lock(mutex_);
    watch_.reset();
    steps_ = ended_ = 0;
    all_submitted_ = false;
    ns_.reset();
    error_.reset();
  }

  void on_all_submitted() {
    const std::lock_guard lock(mutex_);
    all_submitted_ = true;
    changed_.notify_all();
  }

  // Waits for the last stream to be submitted: the first ones would answer up to their contexts.
  void on_step(const StepReport& report) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return all_submitted_; });
    if (report.prompt_tokens > 0 || report.generated_tokens < shape_.num_streams || ns_) return;
    if (!watch_) {
      watch_.emplace();
    } else if (++steps_ == shape_.num_steps) {
      ns_ = watch_->seconds() * 1e9;
    }
  }

  // Whether answers are to go on.
  bool running() {
    const std::lock_guard lock(mutex_);
    if (interrupt::requested()) stop(fail(ErrorCode::kInterrupted, "interrupted"));
    return !ns_ && !error_;
  }

  void on_end(const RequestEnd& end) {
    const std::lock_guard lock(mutex_);
    ++ended_;
    if (end.error) stop(*end.error);
    if (!ns_) stop(fail(ErrorCode::kInternal, "an answer ended before it was measured"));
    changed_.notify_all();
  }

  // Once every stream has ended, or one cannot go on.
  Result<double> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || ended_ == shape_.num_streams; });
    if (error_) return *error_;
    return *ns_;
  }

 private:
  void stop(Error error) {
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }

  const AnswerBatchShape shape_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Stopwatch> watch_;
  int64_t steps_ = 0;
  int64_t ended_ = 0;
  bool all_submitted_ = false;
  std::optional<double> ns_;
  std::optional<Error> error_;
};

class Stream final : public GenerationListener {
 public:
  explicit Stream(StepTimer& timer) : timer_(timer) {}
  void on_prefill(const PrefillProgress&) override { timer_.running(); }
  bool on_token(const ScoredToken&) override { return timer_.running(); }
  void on_end(const RequestEnd& end) override { timer_.on_end(end); }

 private:
  StepTimer& timer_;
};

}  // namespace

struct AnswerBatch::Impl {
  Impl(const AnswerBatchShape& of, std::optional<SparseRule> rule) : shape(of), sparse(rule) {}

  Status submit(std::vector<std::vector<TokenId>> prompts) {
    for (std::vector<TokenId>& prompt : prompts) {
      ServiceRequest request{.prompt = std::move(prompt), .sparse = sparse};
      TRY_STATUS(service->submit(std::move(request), std::make_shared<Stream>(timer)));
    }
    return Ok{};
  }

  AnswerBatchShape shape;
  std::optional<SparseRule> sparse;
  StepTimer timer{shape};
  std::unique_ptr<GenerationService> service;  // destroyed first: its thread calls the timer
};

AnswerBatch::AnswerBatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AnswerBatch::~AnswerBatch() = default;

int64_t AnswerBatch::context_tokens(const AnswerBatchShape& shape) {
  // A step reads a page of a prompt at least.
  const int64_t steps_before = shape.num_streams * pages_for(shape.prompt_tokens);
  // One step may come before the last stream, one starts the clock, one tells the streams to end.
  return shape.prompt_tokens + steps_before + shape.num_steps + 3;
}

Result<std::unique_ptr<AnswerBatch>> AnswerBatch::create(std::shared_ptr<const Model> model,
                                                         EngineOptions options,
                                                         const AnswerBatchShape& shape,
                                                         std::optional<SparseRule> sparse) {
  auto impl = std::make_unique<Impl>(shape, sparse);
  options.context_tokens = context_tokens(shape);
  BatchingOptions batching{.engine = options};
  // Each running request keeps a page to spare.
  batching.kv_tokens = shape.num_streams * (pages_for(options.context_tokens) + 1) * kPageTokens;
  batching.limits.max_running = static_cast<int32_t>(shape.num_streams);
  batching.on_step = [timer = &impl->timer](const StepReport& report) { timer->on_step(report); };
  TRY(impl->service, create_batching_service(std::move(model), std::move(batching)));
  return std::unique_ptr<AnswerBatch>(new AnswerBatch(std::move(impl)));
}

Result<double> AnswerBatch::run(std::vector<std::vector<TokenId>> prompts) {
  CHECK(std::ssize(prompts) == impl_->shape.num_streams);
  impl_->timer.start();
  const Status submitted = impl_->submit(std::move(prompts));
  impl_->timer.on_all_submitted();
  TRY_STATUS(submitted);
  return impl_->timer.wait();
}

}  // namespace winnow
