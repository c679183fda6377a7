// Sequence: the tokens of one conversation whose K and V are in the cache, and the pages that hold
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/sequence_summaries.h"
#include "attention/sparse_rule.h"
#include "base/ids.h"
#include "kv/kv_store.h"

namespace winnow {

// How the tokens of a sequence attend: those of its prompt at [sparse_begin(), sparse_end)
// sparsely, by `rule`, and generated ones if sparse_answer.
struct PromptMode {
  std::optional<SparseRule> rule;
  int32_t sparse_end = 0;
  bool sparse_answer = false;

  static PromptMode of(const std::optional<SparseRule>& rule, int64_t prompt_tokens) {
    if (!rule) return {};
    return {rule, rule->sparse_end(prompt_tokens), rule->sparse_answer(prompt_tokens)};
  }
  bool has_sparse_rows() const { return rule && sparse_end > rule->dense_tokens; }
  // Whether the sequence's pages get summaries.
  bool uses_summaries() const { return has_sparse_rows() || sparse_answer; }
};

// Invariant: pages().size() >= ceil(tokens().size() / kPageTokens). Gives its pages back when
// destroyed.
class Sequence {
 public:
  explicit Sequence(KvStore& kv) : kv_(kv), summaries_(kv.num_layers()) {}
  ~Sequence() { truncate(0); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const PageId> pages() const { return pages_; }
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }

  // Tokens that `prompt` and the cache begin with alike.
  int64_t shared_prefix(std::span<const TokenId> prompt) const;
  // Keeps of the cache what serves `prompt`, run in `mode`, and returns how much that is: at most
  // prompt.size() - 1. Tokens that attended more densely than `mode` asks serve too, unless `exact`
  // (law 4).
  int64_t reuse(std::span<const TokenId> prompt, const PromptMode& mode, bool exact);
  SequenceSummaries& summaries() { return summaries_; }
  // Forgets all but the first `num_tokens` tokens and gives back the pages that held no other.
  void truncate(int64_t num_tokens);
  // Takes pages until `num_tokens` tokens fit; false if the store ran out (pages taken so far are
  // kept).
  bool reserve(int64_t num_tokens);
  // Holds the first tokens of `other`, a whole number of pages, in place of its own: they share the
  // pages. Requires num_tokens <= other.size().
  void share(const Sequence& other, int64_t num_tokens);
  // Counts `tokens` as cached: a step of that phase has written their K and V. Requires that they
  // fit.
  void append(std::span<const TokenId> tokens, Phase phase);
  // Tokens from the start on that were all run as prompt tokens, in the mode of the last prompt: a
  // fresh run of a prompt that begins with them, in that mode, leaves the same bits.
  int64_t prompt_prefix() const { return prompt_prefix_; }

 private:
  KvStore& kv_;
  std::vector<TokenId> tokens_;
  int64_t prompt_prefix_ = 0;
  PromptMode mode_;
  SequenceSummaries summaries_;
  std::vector<PageId> pages_;
};

}  // namespace winnow
