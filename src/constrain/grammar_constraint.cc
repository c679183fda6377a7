#include "constrain/grammar_constraint.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace winnow {
namespace {

// For one request.
constexpr size_t kMaxCachedMaskBytes = 4 << 20;
constexpr size_t kMaxMatcherBytes = 16 << 20;

}  // namespace

GrammarConstraint::GrammarConstraint(std::shared_ptr<const Grammar> grammar,
                                     std::shared_ptr<const TokenTable> tokens,
                                     std::vector<TokenId> end_tokens)
    : grammar_(std::move(grammar)),
      tokens_(std::move(tokens)),
      end_tokens_(std::move(end_tokens)),
      matcher_(*grammar_),
      config_(matcher_.start()) {}

bool GrammarConstraint::may_end() const {
  return ended_ || config_ == kDeadConfig || matcher_.accepts(config_);
}

void GrammarConstraint::mask(std::span<float> logits) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  bound_memory();
  const std::span<const uint64_t> words = allowed().words();
  const size_t num_tokens = std::min(logits.size(), static_cast<size_t>(tokens_->num_tokens()));
  for (size_t begin = 0; begin < num_tokens; begin += 64) {
    const uint64_t word = words[begin / 64];
    const size_t end = std::min(begin + 64, num_tokens);
    if (word == 0) {
      std::fill(logits.begin() + static_cast<ptrdiff_t>(begin),
                logits.begin() + static_cast<ptrdiff_t>(end), kNever);
    } else if (word != ~uint64_t{0}) {
      for (size_t i = begin; i < end; ++i) {
        if ((word >> (i - begin) & 1) == 0) logits[i] = kNever;
      }
    }
  }
  std::fill(logits.begin() + static_cast<ptrdiff_t>(num_tokens), logits.end(), kNever);
}

void GrammarConstraint::accept(TokenId token) {
  if (std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end()) {
    ended_ = true;
    return;
  }
  for (const char byte : tokens_->spelling(token)) {
    if (config_ == kDeadConfig) return;
    config_ = matcher_.step(config_, static_cast<uint8_t>(byte));
  }
}

// Only here, so that a configuration has one index while a mask is made and its token accepted.
void GrammarConstraint::bound_memory() {
  if (config_ == kDeadConfig || matcher_.kept_bytes() < kMaxMatcherBytes) return;
  config_ = matcher_.shrink(config_);
  cache_.clear();
  cache_bytes_ = 0;
}

const TokenSet& GrammarConstraint::allowed() {
  const ConfigId key = ended_ ? kDeadConfig : config_;
  if (const auto known = cache_.find(key); known != cache_.end()) return known->second;
  TokenSet made = make_allowed();
  if (cache_bytes_ + made.num_bytes() > kMaxCachedMaskBytes) {
    cache_.clear();
    cache_bytes_ = 0;
  }
  cache_bytes_ += made.num_bytes();
  return cache_.insert_or_assign(key, std::move(made)).first->second;
}

TokenSet GrammarConstraint::make_allowed() {
  TokenSet allowed(tokens_->num_tokens());
  if (!ended_ && config_ != kDeadConfig) {
    const int64_t max_work = matcher_.work() + kMaxMaskWork;
    bool finished = true;
    const int32_t num_free = matcher_.num_free_characters(config_);
    if (num_free > 0) {
      tokens_->insert_plain(num_free, allowed);
    } else {
      finished = add_walk(tokens_->plain(), max_work, allowed);
    }
    finished = add_walk(tokens_->others(), max_work, allowed) && finished;
    if (!finished) add_single_bytes(allowed);
  }
  // Where no token spells what must come, the answer ends rather than breaks its format.
  if (may_end() || allowed.empty()) {
    for (const TokenId id : end_tokens_) allowed.insert(id);
  }
  return allowed;
}

void GrammarConstraint::add_single_bytes(TokenSet& allowed) {
  const std::bitset<256> next = matcher_.next_bytes(config_);
  for (const TokenTrie* trie : {&tokens_->plain(), &tokens_->others()}) {
    for (uint32_t i = 0; i < trie->num_nodes(); i = trie->nodes[i].skip) {
      if (!next[trie->nodes[i].byte]) continue;
      for (uint32_t t = trie->nodes[i].first_token; t < trie->nodes[i + 1].first_token; ++t) {
        allowed.insert(trie->tokens[t]);
      }
    }
  }
}

bool GrammarConstraint::add_walk(const TokenTrie& trie, int64_t max_work, TokenSet& allowed) {
  path_.assign(1, config_);
  path_.resize(256);
  const auto num_nodes = static_cast<uint32_t>(trie.num_nodes());
  for (uint32_t i = 0; i < num_nodes;) {
    const TokenTrie::Node& node = trie.nodes[i];
    const ConfigId next = matcher_.step(path_[node.depth - 1U], node.byte);
    if (next == kDeadConfig) {
      i = node.skip;
      continue;
    }
    if (matcher_.work() > max_work) return false;
    path_[node.depth] = next;
    ++i;
    for (uint32_t t = node.first_token; t < trie.nodes[i].first_token; ++t) {
      allowed.insert(trie.tokens[t]);
    }
  }
  return true;
}

}  // namespace winnow
