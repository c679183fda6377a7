#include "kv/prefix_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kv/sip_hash.h"

namespace winnow {
namespace {

using NodeId = PrefixCache::NodeId;

// Above every page stands a page or a root.
struct Node {
  std::optional<NodeId> parent;
  std::optional<PageId> page;  // none: a root, or a node in the free list
  bool open = false;
  PageMake make = PageKind::kDense;
  std::array<TokenId, kPageTokens> tokens = {};  // of an open page only the prompt's
  uint64_t hash = 0;
  std::optional<NodeId> next_of_bucket;
  int32_t num_children = 0;
  uint64_t last_used = 0;
  std::string scope;  // of a root
};

// Tokens below a page.
struct TokensBelow {
  NodeId parent;
  std::span<const TokenId> tokens;
};

int32_t num_common(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<int32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// By parents, below one by dense tokens: those that have most in common with others are their
// neighbours.
struct ByDenseTokens {
  using is_transparent = void;
  const std::deque<Node>* nodes;

  TokensBelow of(NodeId id) const {
    const Node& n = (*nodes)[static_cast<size_t>(id)];
    return {*n.parent, std::span(n.tokens).first(static_cast<size_t>(n.make.dense_tokens()))};
  }
  bool operator()(const TokensBelow& a, const TokensBelow& b) const {
    if (a.parent != b.parent) return a.parent < b.parent;
    return std::ranges::lexicographical_compare(a.tokens, b.tokens);
  }
  bool operator()(NodeId a, const TokensBelow& b) const { return (*this)(of(a), b); }
  bool operator()(const TokensBelow& a, NodeId b) const { return (*this)(a, of(b)); }
  bool operator()(NodeId a, NodeId b) const {
    const TokensBelow left = of(a);
    const TokensBelow right = of(b);
    if ((*this)(left, right)) return true;
    return !(*this)(right, left) && a < b;
  }
};

}  // namespace

// Invariants, besides the class's:
//   3. `node_of_page`, `buckets` and the nodes with a page name one another; open ones are in no
//      bucket. `by_dense_tokens` has those that have such tokens.
//   4. `idle` counts the pages that the cache alone owns; `leaves` holds those of them that nothing
//      stands below, by last use.
//   5. At most one root, `empty_root`, has nothing below it.
struct PrefixCache::Impl final : PageOwnersObserver {
  Impl(PagePool& pages, uint64_t key, int bits);

  Node& node(NodeId id) { return nodes[static_cast<size_t>(id)]; }
  const Node& node(NodeId id) const { return nodes[static_cast<size_t>(id)]; }
  std::optional<NodeId>& bucket(uint64_t hash) { return buckets[hash & (buckets.size() - 1)]; }
  const std::optional<NodeId>& bucket(uint64_t hash) const {
    return buckets[hash & (buckets.size() - 1)];
  }
  bool alone(const Node& n) const { return pool.num_owners(*n.page) == 1; }

  uint64_t hash_of(NodeId parent, std::span<const TokenId> tokens, PageKind kind) const;
  template <typename Accepts>
  std::optional<NodeId> find(NodeId parent, std::span<const TokenId> tokens, PageKind kind,
                             const Accepts& accepts) const;
  NodeId new_node();
  NodeId file(NodeId parent, std::span<const TokenId> tokens, const PageMake& make, PageId page);
  void use(NodeId id);
  void unlink(NodeId id);
  void drop_root(NodeId id);
  void on_one_owner_left(PageId page) override;
  void on_second_owner(PageId page) override;

  PagePool& pool;
  uint64_t hash_key;
  uint64_t hash_mask;
  std::deque<Node> nodes;
  std::vector<NodeId> free_nodes;
  std::vector<std::optional<NodeId>> buckets;       // a power of two of them
  std::vector<std::optional<NodeId>> node_of_page;  // [num_pages]
  std::set<NodeId, ByDenseTokens> by_dense_tokens{ByDenseTokens{&nodes}};
  std::map<std::string, NodeId, std::less<>> roots;
  std::optional<NodeId> empty_root;
  std::set<std::pair<uint64_t, NodeId>> leaves;
  int64_t num_filed = 0;
  int64_t idle = 0;
  uint64_t clock = 0;
};

PrefixCache::Impl::Impl(PagePool& pages, uint64_t key, int bits)
    : pool(pages), hash_key(key), hash_mask(~uint64_t{0} >> (64 - bits)) {
  const auto num_pages = static_cast<size_t>(pool.num_pages());
  buckets.resize(std::bit_ceil(2 * num_pages + 1));
  node_of_page.resize(num_pages);
  pool.observe(this);
}

uint64_t PrefixCache::Impl::hash_of(NodeId parent, std::span<const TokenId> tokens,
                                    PageKind kind) const {
  SipHash hash(hash_key, ~hash_key);
  hash.add(static_cast<uint64_t>(parent) << 8 | static_cast<uint64_t>(kind));
  for (size_t i = 0; i < tokens.size(); i += 2) {
    hash.add(static_cast<uint64_t>(static_cast<uint32_t>(tokens[i])) << 32 |
             static_cast<uint32_t>(tokens[i + 1]));
  }
  return hash.finish() & hash_mask;
}

template <typename Accepts>
std::optional<NodeId> PrefixCache::Impl::find(NodeId parent, std::span<const TokenId> tokens,
                                              PageKind kind, const Accepts& accepts) const {
  CHECK(tokens.size() == kPageTokens);
  if (node(parent).num_children == 0) return std::nullopt;
  const uint64_t hash = hash_of(parent, tokens, kind);
  for (std::optional<NodeId> id = bucket(hash); id; id = node(*id).next_of_bucket) {
    const Node& n = node(*id);
    if (n.hash == hash && n.parent == parent && n.make.kind == kind && accepts(n.make) &&
        std::ranges::equal(n.tokens, tokens)) {
      return id;
    }
  }
  return std::nullopt;
}

NodeId PrefixCache::Impl::new_node() {
  if (free_nodes.empty()) {
    nodes.emplace_back();
    return NodeId{static_cast<int32_t>(nodes.size() - 1)};
  }
  const NodeId id = free_nodes.back();
  free_nodes.pop_back();
  node(id) = Node();
  return id;
}

// Takes a node out of the tree. Requires that nothing stands below it.
void PrefixCache::Impl::unlink(NodeId id) {
  Node& n = node(id);
  if (!n.open) {
    std::optional<NodeId>* link = &bucket(n.hash);
    while (*link != id) link = &node(**link).next_of_bucket;
    *link = n.next_of_bucket;
  }
  by_dense_tokens.erase(id);
  node_of_page[static_cast<size_t>(*n.page)].reset();
  const NodeId parent_id = *n.parent;
  n.page.reset();
  n.parent.reset();
  free_nodes.push_back(id);
  --num_filed;

  Node& parent = node(parent_id);
  if (--parent.num_children > 0) return;
  if (!parent.page) {
    drop_root(parent_id);
  } else if (alone(parent)) {
    leaves.emplace(parent.last_used, parent_id);
  }
}

void PrefixCache::Impl::drop_root(NodeId id) {
  roots.erase(node(id).scope);
  free_nodes.push_back(id);
}

// Everywhere but in a bucket.
NodeId PrefixCache::Impl::file(NodeId parent, std::span<const TokenId> tokens, const PageMake& make,
                               PageId page) {
  CHECK(!node_of_page[static_cast<size_t>(page)]);
  CHECK(!node(parent).page || !alone(node(parent)));
  pool.share(page);
  const NodeId id = new_node();
  Node& n = node(id);
  n.parent = parent;
  n.page = page;
  n.make = make;
  std::ranges::copy(tokens, n.tokens.begin());
  n.last_used = ++clock;
  node_of_page[static_cast<size_t>(page)] = id;
  if (make.dense_tokens() > 0) by_dense_tokens.insert(id);
  ++node(parent).num_children;
  if (empty_root == parent) empty_root.reset();
  ++num_filed;
  return id;
}

void PrefixCache::Impl::use(NodeId id) {
  Node& n = node(id);
  const bool is_leaf = leaves.erase({n.last_used, id}) > 0;
  n.last_used = clock;
  if (is_leaf) leaves.emplace(n.last_used, id);
}

void PrefixCache::Impl::on_one_owner_left(PageId page) {
  const std::optional<NodeId> id = node_of_page[static_cast<size_t>(page)];
  if (!id) return;
  Node& n = node(*id);
  n.last_used = ++clock;
  ++idle;
  if (n.num_children == 0) leaves.emplace(n.last_used, *id);
}

void PrefixCache::Impl::on_second_owner(PageId page) {
  const std::optional<NodeId> id = node_of_page[static_cast<size_t>(page)];
  if (!id) return;
  --idle;
  leaves.erase({node(*id).last_used, *id});
}

PrefixCache::PrefixCache(PagePool& pool, uint64_t hash_key, int hash_bits) {
  CHECK(hash_bits >= 1 && hash_bits <= 64);
  impl_ = std::make_unique<Impl>(pool, hash_key, hash_bits);
}

PrefixCache::~PrefixCache() {
  impl_->pool.observe(nullptr);
  for (const Node& n : impl_->nodes) {
    if (n.page) impl_->pool.give_back(*n.page);
  }
}

NodeId PrefixCache::root(std::string_view scope) {
  if (const std::optional<NodeId> id = find_root(scope)) return *id;
  if (impl_->empty_root) impl_->drop_root(*impl_->empty_root);
  const NodeId id = impl_->new_node();
  impl_->node(id).scope = scope;
  impl_->roots.emplace(scope, id);
  impl_->empty_root = id;
  return id;
}

std::optional<NodeId> PrefixCache::find_root(std::string_view scope) const {
  const auto found = impl_->roots.find(scope);
  if (found == impl_->roots.end()) return std::nullopt;
  return found->second;
}

std::optional<NodeId> PrefixCache::find(NodeId parent, std::span<const TokenId> tokens,
                                        const PageMake& make) const {
  return impl_->find(parent, tokens, make.kind,
                     [&](const PageMake& other) { return other == make; });
}

std::optional<NodeId> PrefixCache::find(NodeId parent, std::span<const TokenId> tokens,
                                        PageKind kind) const {
  return impl_->find(parent, tokens, kind, [](const PageMake&) { return true; });
}

std::optional<PrefixCache::CommonTokens> PrefixCache::find_common(
    NodeId parent, std::span<const TokenId> tokens) const {
  CHECK(tokens.size() <= kPageTokens);
  const auto& order = impl_->by_dense_tokens;
  std::optional<CommonTokens> best;
  const auto consider = [&](NodeId id) {
    const TokensBelow found = order.key_comp().of(id);
    if (found.parent != parent) return;
    const int32_t common = num_common(found.tokens, tokens);
    if (common > (best ? best->num_tokens : 0)) best = {page(id), common};
  };
  const auto behind = order.lower_bound(TokensBelow{parent, tokens});
  if (behind != order.end()) consider(*behind);
  if (behind != order.begin()) consider(*std::prev(behind));
  return best;
}

PageId PrefixCache::page(NodeId id) const {
  const Node& n = impl_->node(id);
  CHECK(n.page.has_value());
  return *n.page;
}

PageMake PrefixCache::make(NodeId id) const { return impl_->node(id).make; }

NodeId PrefixCache::insert(NodeId parent, std::span<const TokenId> tokens, const PageMake& make,
                           PageId page) {
  Impl& s = *impl_;
  if (const std::optional<NodeId> equal = find(parent, tokens, make)) return *equal;
  const NodeId id = s.file(parent, tokens, make, page);
  Node& n = s.node(id);
  n.hash = s.hash_of(parent, tokens, make.kind);
  n.next_of_bucket = std::exchange(s.bucket(n.hash), id);
  return id;
}

std::optional<NodeId> PrefixCache::insert_open(NodeId parent, std::span<const TokenId> tokens,
                                               PageId page) {
  const auto num_tokens = static_cast<int32_t>(tokens.size());
  CHECK(num_tokens > 0 && num_tokens < kPageTokens);
  const std::optional<CommonTokens> filed = find_common(parent, tokens);
  if (filed && filed->num_tokens == num_tokens) return std::nullopt;
  const NodeId id = impl_->file(parent, tokens, {PageKind::kGenerated, num_tokens}, page);
  impl_->node(id).open = true;
  return id;
}

void PrefixCache::remove_open(NodeId id) {
  const Node& n = impl_->node(id);
  CHECK(n.open && !impl_->alone(n));
  const PageId page = *n.page;
  impl_->unlink(id);
  impl_->pool.give_back(page);
}

void PrefixCache::touch(NodeId id) {
  ++impl_->clock;
  for (std::optional<NodeId> at = id; at; at = impl_->node(*at).parent) impl_->use(*at);
}

bool PrefixCache::evict_one() {
  Impl& s = *impl_;
  if (s.leaves.empty()) return false;
  const NodeId id = s.leaves.begin()->second;
  s.leaves.erase(s.leaves.begin());
  const PageId page = *s.node(id).page;
  s.unlink(id);
  --s.idle;
  s.pool.give_back(page);
  return true;
}

int64_t PrefixCache::num_filed() const { return impl_->num_filed; }
int64_t PrefixCache::num_evictable() const { return impl_->idle; }
int64_t PrefixCache::num_roots() const { return static_cast<int64_t>(impl_->roots.size()); }

void PrefixCache::check_invariants() const {
  const Impl& s = *impl_;
  std::vector<int32_t> num_children(s.nodes.size(), 0);
  int64_t num_filed = 0;
  int64_t idle = 0;
  size_t num_leaves = 0;
  size_t num_dense = 0;
  for (size_t i = 0; i < s.nodes.size(); ++i) {
    const Node& n = s.nodes[i];
    const auto id = NodeId{static_cast<int32_t>(i)};
    if (!n.page) continue;
    ++num_filed;
    CHECK(s.node_of_page[static_cast<size_t>(*n.page)] == id);
    if (!n.open) CHECK(find(*n.parent, n.tokens, n.make) == id);
    CHECK(s.by_dense_tokens.contains(id) == (n.make.dense_tokens() > 0));
    num_dense += n.make.dense_tokens() > 0 ? 1 : 0;
    ++num_children[static_cast<size_t>(*n.parent)];
    const Node& parent = s.node(*n.parent);
    CHECK(!parent.page || s.pool.num_owners(*parent.page) >= s.pool.num_owners(*n.page));
    const bool is_leaf = s.alone(n) && n.num_children == 0;
    CHECK(s.leaves.contains({n.last_used, id}) == is_leaf);
    idle += s.alone(n) ? 1 : 0;
    num_leaves += is_leaf ? 1 : 0;
  }
  CHECK(num_filed == s.num_filed && idle == s.idle && num_leaves == s.leaves.size());
  CHECK(num_dense == s.by_dense_tokens.size());
  for (const auto& [scope, id] : s.roots) {
    CHECK(s.node(id).scope == scope && !s.node(id).page);
    CHECK(num_children[static_cast<size_t>(id)] > 0 || s.empty_root == id);
  }
  for (size_t i = 0; i < s.nodes.size(); ++i) {
    const Node& n = s.nodes[i];
    if (n.page) CHECK(n.num_children == num_children[i] && !(n.open && n.num_children > 0));
  }
}

}  // namespace winnow
