#include "engine/prefix_match.h"

#include <algorithm>
#include <optional>
#include <span>

namespace winnow {
namespace {

using NodeId = PrefixCache::NodeId;

// Pages made otherwise, but at least as exactly.
std::optional<NodeId> find_more_exact(const PrefixCache& cache, NodeId parent,
                                      std::span<const TokenId> tokens, PageKind asked) {
  std::optional<NodeId> found;
  if (asked == PageKind::kSparse) found = cache.find(parent, tokens, PageKind::kDense);
  if (!found && asked != PageKind::kGenerated) {
    found = cache.find(parent, tokens, PageKind::kGenerated);
  }
  return found;
}

std::optional<NodeId> find_page(const PrefixCache& cache, NodeId parent, const RequestEntry& entry,
                                int64_t page_idx) {
  const auto tokens = std::span(entry.seq.tokens).subspan(page_idx * kPageTokens, kPageTokens);
  const bool held_before = page_idx < std::ssize(entry.made);
  if (!entry.cache.read && !held_before) return std::nullopt;
  const PageMake own = own_make(entry.mode, entry.seq.prompt_tokens, page_idx);
  // What it has held before leaves its answer as it was.
  const PageMake first = held_before ? entry.made[static_cast<size_t>(page_idx)] : own;
  std::optional<NodeId> found = cache.find(parent, tokens, first);
  if (!found && first != own) found = cache.find(parent, tokens, own);
  if (!found && entry.cache.read && !entry.cache.exact) {
    found = find_more_exact(cache, parent, tokens, own.kind);
  }
  return found;
}

std::optional<PrefixCache::CommonTokens> find_copied(const PrefixCache& cache, NodeId parent,
                                                     const RequestEntry& entry, int64_t page_idx) {
  if (!entry.cache.read) return std::nullopt;
  const int64_t begin = page_idx * kPageTokens;
  const int64_t most =
      std::min<int64_t>(own_make(entry.mode, entry.seq.prompt_tokens, page_idx).dense_tokens(),
                        std::ssize(entry.seq.tokens) - 1 - begin);
  if (most <= 0) return std::nullopt;
  return cache.find_common(parent, std::span(entry.seq.tokens).subspan(begin, most));
}

}  // namespace

PageMake own_make(const PromptMode& mode, int64_t prompt_tokens, int64_t page_idx) {
  const int64_t begin = page_idx * kPageTokens;
  if (begin + kPageTokens > prompt_tokens) {
    return {PageKind::kGenerated,
            static_cast<int32_t>(std::max<int64_t>(0, prompt_tokens - begin))};
  }
  const bool sparse =
      mode.has_sparse_rows() && begin >= mode.rule->dense_tokens && begin < mode.sparse_end;
  return sparse ? PageKind::kSparse : PageKind::kDense;
}

bool serves(const PageMake& filed, const PageMake& own, bool exact) {
  const bool more_exact = filed.kind == PageKind::kDense && own.kind == PageKind::kSparse;
  return filed == own || (!exact && more_exact);
}

PrefixMatch match_prefix(const PrefixCache& cache, const RequestEntry& entry) {
  PrefixMatch match;
  std::optional<NodeId> at =
      entry.chain.empty() ? cache.find_root(entry.cache.scope) : entry.chain.back();
  if (!at) return match;
  const int64_t end = (std::ssize(entry.seq.tokens) - 1) / kPageTokens;
  int64_t i = std::ssize(entry.chain);
  for (; i < end; ++i) {
    const std::optional<NodeId> next = find_page(cache, *at, entry, i);
    if (!next) break;
    at = next;
    match.nodes.push_back(*at);
    match.pages.push_back(cache.page(*at));
  }
  match.copied = find_copied(cache, *at, entry, i);
  return match;
}

}  // namespace winnow
