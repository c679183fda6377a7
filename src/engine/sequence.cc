#include "engine/sequence.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace winnow {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t sparse_begin(const PromptMode& mode) {
  return mode.has_sparse_rows() ? mode.rule->dense_tokens : kNoLimit;
}

// Tokens run in mode `was` that a run in mode `now` would leave with the same bits.
int64_t same_tokens(const PromptMode& was, const PromptMode& now) {
  if (!was.has_sparse_rows() && !now.has_sparse_rows()) return kNoLimit;
  if (was.rule != now.rule) return std::min(sparse_begin(was), sparse_begin(now));
  return was.sparse_end == now.sparse_end ? kNoLimit : std::min(was.sparse_end, now.sparse_end);
}

// Tokens run in mode `was` that attended to everything that they do in mode `now`, or to more.
int64_t serving_tokens(const PromptMode& was, const PromptMode& now) {
  if (!was.has_sparse_rows()) return kNoLimit;
  if (was.rule != now.rule) return sparse_begin(was);
  return was.sparse_end > now.sparse_end ? now.sparse_end : kNoLimit;
}

}  // namespace

int64_t Sequence::shared_prefix(std::span<const TokenId> prompt) const {
  const auto [mine, theirs] =
      std::mismatch(tokens_.begin(), tokens_.end(), prompt.begin(), prompt.end());
  return mine - tokens_.begin();
}

int64_t Sequence::reuse(std::span<const TokenId> prompt, const PromptMode& mode, bool exact) {
  const int64_t same = std::min(same_tokens(mode_, mode), prompt_prefix_);
  int64_t kept = std::min(shared_prefix(prompt), std::ssize(prompt) - 1);
  kept = std::min(kept, exact ? same : serving_tokens(mode_, mode));
  if (mode_.sparse_answer && mode_.rule != mode.rule) kept = std::min(kept, prompt_prefix_);
  // A sparse tile chooses its blocks for all its rows together.
  if (kept > sparse_begin(mode) && kept < mode.sparse_end) {
    kept = kept / kPageTokens * kPageTokens;
  }
  truncate(kept);
  prompt_prefix_ = std::min(prompt_prefix_, same);
  if (mode_.rule != mode.rule) summaries_.truncate(0);
  mode_ = mode;
  return kept;
}

void Sequence::truncate(int64_t num_tokens) {
  CHECK(num_tokens <= size());
  tokens_.resize(static_cast<size_t>(num_tokens));
  prompt_prefix_ = std::min(prompt_prefix_, num_tokens);
  summaries_.truncate(num_tokens);
  while (std::ssize(pages_) > pages_for(num_tokens)) {
    kv_.pool().give_back(pages_.back());
    pages_.pop_back();
  }
}

bool Sequence::reserve(int64_t num_tokens) {
  while (std::ssize(pages_) < pages_for(num_tokens)) {
    const std::optional<PageId> page = kv_.pool().take();
    if (!page) return false;
    pages_.push_back(*page);
  }
  return true;
}

void Sequence::share(const Sequence& other, int64_t num_tokens) {
  CHECK(num_tokens % kPageTokens == 0 && num_tokens <= other.size() && &kv_ == &other.kv_);
  truncate(0);
  const auto num_pages = static_cast<size_t>(num_tokens / kPageTokens);
  for (const PageId page : other.pages().first(num_pages)) {
    kv_.pool().share(page);
    pages_.push_back(page);
  }
  const std::span<const TokenId> tokens = other.tokens().first(static_cast<size_t>(num_tokens));
  tokens_.assign(tokens.begin(), tokens.end());
  prompt_prefix_ = std::min(num_tokens, other.prompt_prefix_);
  mode_ = other.mode_;
}

void Sequence::append(std::span<const TokenId> tokens, Phase phase) {
  if (phase == Phase::kPrompt && prompt_prefix_ == size()) prompt_prefix_ += std::ssize(tokens);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  CHECK(std::ssize(pages_) >= pages_for(size()));
}

}  // namespace winnow
