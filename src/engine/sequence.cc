#include "engine/sequence.h"

#include <algorithm>

#include "base/check.h"

namespace winnow {
int64_t Sequence::shared_prefix(std::span<const TokenId> prompt) const {
  const auto [mine, theirs] =
      std::mismatch(tokens_.begin(), tokens_.end(), prompt.begin(), prompt.end());
  return mine - tokens_.begin();
}

void Sequence::truncate(int64_t num_tokens) {
  CHECK(num_tokens <= size());
  tokens_.resize(static_cast<size_t>(num_tokens));
  prompt_prefix_ = std::min(prompt_prefix_, num_tokens);
  while (std::ssize(pages_) > pages_for(num_tokens)) {
    kv_.give_back(pages_.back());
    pages_.pop_back();
  }
}

bool Sequence::reserve(int64_t num_tokens) {
  while (std::ssize(pages_) < pages_for(num_tokens)) {
    const std::optional<PageId> page = kv_.take();
    if (!page) return false;
    pages_.push_back(*page);
  }
  return true;
}

void Sequence::append(std::span<const TokenId> tokens, Phase phase) {
  if (phase == Phase::kPrompt && prompt_prefix_ == size()) prompt_prefix_ += std::ssize(tokens);
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  CHECK(std::ssize(pages_) >= pages_for(size()));
}

}  // namespace winnow
