// FakeService: a GenerationService that answers from a script, on a thread of its own, one token
// per request and step. It can be held, and it remembers what it was asked.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/generation_service.h"

namespace winnow::test {

class FakeService final : public GenerationService {
 public:
  // The tokens that answer a request; an end token follows if it has any.
  using Script = std::function<std::vector<TokenId>(const ServiceRequest&)>;

  static constexpr int64_t kChunkTokens = 128;
  static constexpr int32_t kBlockTokens = 32;

  FakeService(std::shared_ptr<const Model> model, Script script, int64_t context_tokens = 4096)
      : model_(std::move(model)), script_(std::move(script)), context_tokens_(context_tokens) {
    thread_ = std::thread([this] { work(); });
  }
  ~FakeService() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  // While held nothing moves but cancellation.
  void hold(bool held) {
    const std::lock_guard lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  // So many more steps while held.
  void step(int64_t count) {
    const std::lock_guard lock(mutex_);
    free_steps_ += count;
    changed_.notify_all();
  }
  void set_max_waiting(int64_t count) {
    const std::lock_guard lock(mutex_);
    max_waiting_ = count;
  }
  void set_max_running(int64_t count) {
    const std::lock_guard lock(mutex_);
    max_running_ = count;
  }
  // The next request ends with this after its first token.
  void fail_next(Error error) {
    const std::lock_guard lock(mutex_);
    next_error_ = std::move(error);
  }
  void set_trouble(bool failed, double seconds_in_step) {
    const std::lock_guard lock(mutex_);
    failed_ = failed;
    seconds_in_step_ = seconds_in_step;
  }

  // Waits until that many requests are at hand, or `seconds` have passed; whether they are.
  bool wait_for_requests(size_t count, double seconds = 60) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return requests_.size() == count; });
  }
  bool wait_for_cancelled(int64_t count, double seconds = 60) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                             [&] { return num_cancelled_ >= count; });
  }
  int64_t num_cancelled() const {
    const std::lock_guard lock(mutex_);
    return num_cancelled_;
  }
  uint64_t num_submitted() const {
    const std::lock_guard lock(mutex_);
    return num_submitted_;
  }
  int64_t num_tokens() const {
    const std::lock_guard lock(mutex_);
    return num_tokens_;
  }
  // The request submitted last, without its constraint. Requires that there was one.
  ServiceRequest last_request() const {
    const std::lock_guard lock(mutex_);
    return copy_of(last_);
  }
  bool last_had_constraint() const {
    const std::lock_guard lock(mutex_);
    return last_had_constraint_;
  }

  const Model& model() const override { return *model_; }
  int64_t context_tokens() const override { return context_tokens_; }

  Result<RequestId> submit(ServiceRequest request,
                           std::shared_ptr<GenerationListener> listener) override {
    const std::lock_guard lock(mutex_);
    if (draining_) return fail(ErrorCode::kShuttingDown, "the engine is shutting down");
    const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
    if (prompt_tokens >= context_tokens_) {
      return fail(ErrorCode::kContextExceeded, "prompt: too long");
    }
    if (static_cast<int64_t>(requests_.size()) >= max_running_ + max_waiting_) {
      return fail(ErrorCode::kOverloaded, "the queue is full");
    }
    const RequestId id{++num_submitted_};
    last_ = copy_of(request);
    last_had_constraint_ = request.constraint != nullptr;
    Running running;
    running.id = id;
    running.answer = script_(request);
    running.request = std::move(request);
    running.listener = std::move(listener);
    running.error = std::exchange(next_error_, std::nullopt);
    requests_.push_back(std::move(running));
    changed_.notify_all();
    return id;
  }

  void cancel(RequestId id) override {
    const std::lock_guard lock(mutex_);
    for (Running& running : requests_) {
      if (running.id == id) running.cancelled = true;
    }
    changed_.notify_all();
  }

  ServiceStatus status() const override {
    const std::lock_guard lock(mutex_);
    ServiceStatus status;
    const auto count = static_cast<int64_t>(requests_.size());
    status.num_running = std::min(count, max_running_);
    status.num_waiting = count - status.num_running;
    status.max_running = max_running_;
    status.max_waiting = max_waiting_;
    status.pages = {.total = 64, .live = count, .cached = 2, .free = 62 - count};
    status.num_steps = num_steps_;
    status.failed = failed_;
    status.seconds_in_step = seconds_in_step_;
    for (const Running& running : requests_) {
      status.requests.push_back(
          {.id = running.id,
           .phase = running.prefilled ? RequestPhase::kDecode : RequestPhase::kPrompt,
           .prompt_tokens = static_cast<int64_t>(running.request.prompt.size()),
           .processed_tokens = running.processed,
           .generated_tokens = running.generated});
    }
    return status;
  }

  void drain() override {
    const std::lock_guard lock(mutex_);
    draining_ = true;
  }

  // The score of any token.
  static ScoredToken scored(TokenId token, int32_t num_top) {
    ScoredToken result{.token = token, .logprob = -0.25F, .rank = 1};
    for (int32_t i = 0; i < num_top; ++i) {
      result.top.push_back({token + i, -0.25F - static_cast<float>(i)});
    }
    return result;
  }

 private:
  struct Running {
    RequestId id = {};
    ServiceRequest request;
    std::shared_ptr<GenerationListener> listener;
    std::vector<TokenId> answer;
    std::optional<Error> error;
    bool cancelled = false;
    bool prefilled = false;
    int64_t processed = 0;
    int64_t generated = 0;
  };

  static ServiceRequest copy_of(const ServiceRequest& request) {
    ServiceRequest copy;
    copy.prompt = request.prompt;
    copy.max_new_tokens = request.max_new_tokens;
    copy.min_new_tokens = request.min_new_tokens;
    copy.sampling = request.sampling;
    copy.end_tokens = request.end_tokens;
    copy.sparse = request.sparse;
    copy.reuse = request.reuse;
    copy.cache_scope = request.cache_scope;
    copy.read_cache = request.read_cache;
    copy.score_tokens = request.score_tokens;
    copy.num_top_logprobs = request.num_top_logprobs;
    copy.score_prompt = request.score_prompt;
    copy.num_prompt_top_logprobs = request.num_prompt_top_logprobs;
    copy.save_as = request.save_as;
    return copy;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopping_ || end_cancelled() || may_step(); });
      if (stopping_) break;
      if (!may_step()) continue;
      if (held_) --free_steps_;
      ++num_steps_;
      const size_t count = std::min(requests_.size(), static_cast<size_t>(max_running_));
      for (size_t i = 0; i < count; ++i) advance(requests_[i]);
      std::erase_if(requests_, [](const Running& running) { return !running.listener; });
      changed_.notify_all();
      // Others are let in between steps.
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
    for (Running& running : requests_) {
      if (running.listener) end(running, FinishReason::kCancelled);
    }
  }

  bool may_step() const { return !requests_.empty() && (!held_ || free_steps_ > 0); }

  // Always false: to be used in a wait.
  bool end_cancelled() {
    for (Running& running : requests_) {
      if (!running.cancelled) continue;
      end(running, FinishReason::kCancelled);
      ++num_cancelled_;
    }
    if (std::erase_if(requests_, [](const Running& r) { return !r.listener; }) > 0) {
      changed_.notify_all();
    }
    return false;
  }

  void advance(Running& running) {
    const ServiceRequest& request = running.request;
    const auto prompt_tokens = static_cast<int64_t>(request.prompt.size());
    if (!running.prefilled) {
      running.processed = std::min(prompt_tokens, running.processed + kChunkTokens);
      running.listener->on_prefill(
          {.done = running.processed, .total = prompt_tokens, .elapsed_s = 0.5, .eta_s = 1});
      if (running.processed < prompt_tokens) return;
      running.prefilled = true;
      observe_prompt(request);
      score_prompt(running);
    }
    if (request.max_new_tokens == 0 || request.save_as)
      return end(running, FinishReason::kMaxTokens);
    if (running.error && running.generated > 0) return end(running, FinishReason::kEndToken);
    const auto done = static_cast<size_t>(running.generated);
    const bool has_end = !request.end_tokens.empty();
    TokenId token = 0;
    if (done < running.answer.size() || !has_end) {
      token = running.answer.empty() ? 0 : running.answer[done % running.answer.size()];
    } else {
      token = request.end_tokens.back();
    }
    ++running.generated;
    if (std::find(request.end_tokens.begin(), request.end_tokens.end(), token) !=
        request.end_tokens.end()) {
      return end(running, FinishReason::kEndToken, token);
    }
    ++num_tokens_;
    if (!running.listener->on_token(scored(token, request.num_top_logprobs))) {
      return end(running, FinishReason::kStopped);
    }
    if (running.generated == request.max_new_tokens) {
      return end(running, FinishReason::kMaxTokens);
    }
    if (prompt_tokens + running.generated >= context_tokens_) {
      return end(running, FinishReason::kContextFull);
    }
  }

  // One tile of the last positions, which keeps nothing but the first block and its own.
  static void observe_prompt(const ServiceRequest& request) {
    const auto num_blocks = static_cast<int32_t>(request.prompt.size()) / kBlockTokens;
    if (request.observer == nullptr || num_blocks < 3) return;
    request.observer->on_tile({.first_position = (num_blocks - 1) * kBlockTokens,
                               .num_positions = kBlockTokens,
                               .block_tokens = kBlockTokens,
                               .kept = {},
                               .first_candidate = 1,
                               .end_candidate = num_blocks - 1});
  }

  void score_prompt(Running& running) {
    if (!running.request.score_prompt) return;
    std::vector<ScoredToken> scores;
    for (const TokenId token : running.request.prompt) {
      scores.push_back(scored(token, running.request.num_prompt_top_logprobs));
    }
    scores.front() = {.token = running.request.prompt.front()};
    // In parts, as an engine would.
    const size_t half = scores.size() / 2;
    const std::span<const ScoredToken> all(scores);
    if (half > 0) running.listener->on_prompt_scores(all.first(half));
    running.listener->on_prompt_scores(all.subspan(half));
  }

  void end(Running& running, FinishReason finish, TokenId end_token = -1) {
    RequestEnd news;
    news.finish = finish;
    if (finish != FinishReason::kCancelled) news.error = running.error;
    news.end_token = end_token;
    news.prompt_tokens = static_cast<int64_t>(running.request.prompt.size());
    news.generated_tokens = running.generated;
    news.queue_s = 0.125;
    news.prompt_s = 0.25;
    news.decode_s = 0.5;
    if (const auto& name = running.request.save_as) {
      news.saved = {
          .name = name->name, .num_tokens = news.prompt_tokens / 128 * 128, .file_bytes = 4096};
    }
    running.listener->on_end(news);
    running.listener.reset();
  }

  const std::shared_ptr<const Model> model_;
  const Script script_;
  const int64_t context_tokens_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Running> requests_;
  ServiceRequest last_;
  bool last_had_constraint_ = false;
  std::optional<Error> next_error_;
  bool held_ = false;
  bool stopping_ = false;
  bool draining_ = false;
  bool failed_ = false;
  double seconds_in_step_ = 0;
  int64_t free_steps_ = 0;
  int64_t max_waiting_ = 1000;
  int64_t max_running_ = 1000;
  int64_t num_cancelled_ = 0;
  int64_t num_tokens_ = 0;
  int64_t num_steps_ = 0;
  uint64_t num_submitted_ = 0;
  std::thread thread_;
};

}  // namespace winnow::test
