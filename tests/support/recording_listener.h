// RecordingListener: keeps what a GenerationService tells about one request, and waits for its end.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/generation_service.h"

namespace winnow::test {

class RecordingListener final : public GenerationListener {
 public:
  // `on_token_hook` decides whether the answer goes on.
  explicit RecordingListener(std::function<bool(const ScoredToken&)> on_token_hook = {},
                             std::function<void()> on_prefill_hook = {})
      : on_token_hook_(std::move(on_token_hook)), on_prefill_hook_(std::move(on_prefill_hook)) {}

  void on_prefill(const PrefillProgress& progress) override {
    {
      const std::lock_guard lock(mutex_);
      progress_.push_back(progress);
    }
    if (on_prefill_hook_) on_prefill_hook_();
  }
  void on_prompt_scores(std::span<const ScoredToken> tokens) override {
    const std::lock_guard lock(mutex_);
    prompt_scores_.insert(prompt_scores_.end(), tokens.begin(), tokens.end());
  }
  bool on_token(const ScoredToken& token) override {
    {
      const std::lock_guard lock(mutex_);
      tokens_.push_back(token);
      changed_.notify_all();
    }
    return !on_token_hook_ || on_token_hook_(token);
  }
  void on_end(const RequestEnd& end) override {
    const std::lock_guard lock(mutex_);
    end_ = end;
    ++num_ends_;
    changed_.notify_all();
  }

  void wait_for_tokens(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokens_.size() >= count || end_; });
  }
  RequestEnd wait_for_end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return end_.has_value(); });
    return *end_;
  }
  // After the end.
  std::vector<TokenId> ids() const {
    std::vector<TokenId> ids;
    for (const ScoredToken& token : tokens_) ids.push_back(token.token);
    return ids;
  }
  const std::vector<ScoredToken>& tokens() const { return tokens_; }
  const std::vector<ScoredToken>& prompt_scores() const { return prompt_scores_; }
  const std::vector<PrefillProgress>& progress() const { return progress_; }
  int num_ends() const { return num_ends_; }

 private:
  std::function<bool(const ScoredToken&)> on_token_hook_;
  std::function<void()> on_prefill_hook_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<PrefillProgress> progress_;
  std::vector<ScoredToken> prompt_scores_;
  std::vector<ScoredToken> tokens_;
  std::optional<RequestEnd> end_;
  int num_ends_ = 0;
};

}  // namespace winnow::test
