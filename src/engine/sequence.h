// Sequence: the tokens of one conversation whose K and V are in the cache, and the pages that hold
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/kv_store.h"

namespace winnow {

// Invariant: pages().size() >= ceil(tokens().size() / kPageTokens). Gives its pages back when
// destroyed.
class Sequence {
 public:
  explicit Sequence(KvStore& kv) : kv_(kv) {}
  ~Sequence() { truncate(0); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const PageId> pages() const { return pages_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }

  // Tokens that `prompt` and the cache begin with alike.
  int64_t shared_prefix(std::span<const TokenId> prompt) const;
  // Forgets all but the first `num_tokens` tokens and gives back the pages that held no other.
  void truncate(int64_t num_tokens);
  // Takes pages until `num_tokens` tokens fit; false if the store ran out (pages taken so far are
  // kept).
  bool reserve(int64_t num_tokens);
  // Counts `tokens` as cached: a step of that phase has written their K and V. Requires that they
  // fit.
  void append(std::span<const TokenId> tokens, Phase phase);
  // Tokens from the start on that were all run as prompt tokens: a fresh run of any prompt that
  // begins with them leaves the same bits.
  int64_t prompt_prefix() const { return prompt_prefix_; }

 private:
  KvStore& kv_;
  std::vector<TokenId> tokens_;
  int64_t prompt_prefix_ = 0;
  std::vector<PageId> pages_;
};

}  // namespace winnow
