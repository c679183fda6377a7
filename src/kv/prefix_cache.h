// PrefixCache: pages of earlier prompts and answers, found again by what shaped them. A tree: a
// page stands below the page before it, so its place names all tokens before it. One owner, in the
// pool's sense, of every page it files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/ids.h"
#include "kv/page_pool.h"
#include "tensor/kv_layout.h"

namespace winnow {

// How the tokens of a page got their K and V. A prompt's pages are dense where its rows were, in
// short prompts and before and behind the sparse rows.
enum class PageKind : uint8_t {
  kDense,      // prompt tokens that attended to everything
  kSparse,     // prompt tokens that attended by the scope's rule
  kGenerated,  // at least one generated token
};

// Pages of equal tokens below the same page hold the same bits exactly when they were made alike. A
// generated page is made alike where its prompt ends at the same token.
struct PageMake {
  PageMake(PageKind of, int32_t from_prompt)
      : kind(of), prompt_tokens(of == PageKind::kGenerated ? from_prompt : kPageTokens) {}
  // A generated page of generated tokens alone.
  PageMake(PageKind of) : PageMake(of, 0) {}  // NOLINT(google-explicit-constructor)
  // The first tokens that are a prompt's and attended to everything: a page of another make may
  // begin with the same bits.
  int32_t dense_tokens() const { return kind == PageKind::kSparse ? 0 : prompt_tokens; }
  friend bool operator==(const PageMake&, const PageMake&) = default;

  PageKind kind;
  int32_t prompt_tokens;  // the page's first tokens
};

// Invariants:
//   1. A page is filed at most once, with tokens that are computed: all of it, or, as an open page,
//      the first ones. Its owner goes on filling an open page behind them; nothing stands below it.
//   2. Whoever owns a filed page owns the pages above it, so a page that the cache alone owns has
//      only such pages below it: all of them can be evicted, leaves first.
class PrefixCache {
 public:
  enum class NodeId : int32_t {};

  // `hash_key` should be random per process: the places of pages then cannot be foreseen. A hit is
  // always confirmed by comparing tokens, whatever `hash_bits` is. `pool` must outlive the cache,
  // which is its observer.
  PrefixCache(PagePool& pool, uint64_t hash_key, int hash_bits = 64);
  ~PrefixCache();

  // Where chains begin that only this scope sees (tenant, attention rule and its parameters). Valid
  // until the next page is filed or the next root asked for; longer while a page stands below it.
  NodeId root(std::string_view scope);
  std::optional<NodeId> find_root(std::string_view scope) const;
  // The page below `parent` with these tokens, made that way. Requires kPageTokens tokens.
  std::optional<NodeId> find(NodeId parent, std::span<const TokenId> tokens,
                             const PageMake& make) const;
  // The same, wherever the prompt of a generated page ended.
  std::optional<NodeId> find(NodeId parent, std::span<const TokenId> tokens, PageKind kind) const;
  // The page below `parent`, open ones included, that has most dense tokens of a prompt in common
  // with the beginning of `tokens`, at most kPageTokens; none if there is no such token.
  struct CommonTokens {
    PageId page = {};
    int32_t num_tokens = 0;
  };
  std::optional<CommonTokens> find_common(NodeId parent, std::span<const TokenId> tokens) const;
  PageId page(NodeId node) const;
  PageMake make(NodeId node) const;

  // Files a page and becomes one of its owners. If an equal one is there, that one is returned and
  // `page` stays unfiled: the two hold the same bits. Requires that the caller owns `page` and the
  // pages down to `parent`.
  NodeId insert(NodeId parent, std::span<const TokenId> tokens, const PageMake& make, PageId page);
  // Files a page of which only these dense tokens of a prompt are computed, fewer than kPageTokens;
  // none if another page has them. Requires what insert() does.
  std::optional<NodeId> insert_open(NodeId parent, std::span<const TokenId> tokens, PageId page);
  // The open page is filed no more. Requires that the caller owns it, too.
  void remove_open(NodeId node);
  // The chain down to `node` was used: it is evicted after all that was not. Being owned by others
  // is use, too, for as long as it lasts.
  void touch(NodeId node);
  // Gives back the page that went unused longest among those that the cache alone owns and nothing
  // stands below; false if there is none.
  bool evict_one();

  int64_t num_filed() const;
  // Pages that the cache alone owns: evict_one() succeeds this often.
  int64_t num_evictable() const;
  int64_t num_roots() const;
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
