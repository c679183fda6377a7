#include "engine/scheduler.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/page_budget.h"
#include "engine/prefix_match.h"
#include "engine/request_table.h"
#include "engine/step_planner.h"

namespace winnow {
namespace {

// A request that takes its turn: the filed pages it shares, and the pages it holds afterwards.
struct Taking {
  RequestEntry* entry = nullptr;
  PrefixMatch match;
  int64_t num_pages = 0;
};

}  // namespace

struct Scheduler::Impl {
  RequestEntry& entry(RequestId id) {
    const auto found = requests.entries.find(static_cast<uint64_t>(id));
    CHECK(found != requests.entries.end());
    return found->second;
  }

  std::vector<Taking> takings(const StepPlan& plan);
  bool can_take(const StepPlan& plan, std::span<const Taking> takings);
  void preempt(RequestEntry& entry);
  void start_running(RequestEntry& entry);
  void share(RequestEntry& entry, const PrefixMatch& match);
  PageId take_page();
  void apply(const SequenceStep& step, const StepResult& result,
             std::vector<ExchangedPage>& exchanged);
  void file_pages(RequestEntry& entry, std::vector<ExchangedPage>& exchanged);
  void file_open_page(RequestEntry& entry);
  void release_pages(RequestEntry& entry);
  void forget(RequestEntry& entry);
  void check_request(const RequestEntry& entry) const;

  SchedulerLimits limits;
  PagePool& pool;
  PrefixCache& cache;
  RequestTable requests = {};
  uint64_t num_arrivals = 0;
  uint64_t num_admissions = 0;
  int64_t num_steps = 0;
  bool in_step = false;
};

Scheduler::Scheduler(const SchedulerLimits& limits, PagePool& pool, PrefixCache& cache)
    : impl_(new Impl{.limits = limits, .pool = pool, .cache = cache}) {
  CHECK(limits.max_running >= 1 && limits.max_waiting >= 1 && limits.max_rerun_tokens >= 1);
}

Scheduler::~Scheduler() {
  for (RequestEntry* entry : impl_->requests.running) impl_->release_pages(*entry);
}

int64_t Scheduler::most_tokens() const {
  return std::min<int64_t>(impl_->pool.num_pages() * kPageTokens,
                           std::numeric_limits<int32_t>::max());
}

Admission Scheduler::submit(ScheduledRequest request) {
  CHECK(!impl_->in_step);
  CHECK(!request.prompt.empty() && request.max_new_tokens >= 1);
  const auto prompt_tokens = std::ssize(request.prompt);
  if (prompt_tokens > most_tokens() || request.max_new_tokens > most_tokens() - prompt_tokens) {
    return Admission::kNeverFits;
  }
  if (num_waiting() >= impl_->limits.max_waiting) return Admission::kQueueFull;

  RequestTable& requests = impl_->requests;
  const auto [place, is_new] = requests.entries.try_emplace(static_cast<uint64_t>(request.id));
  CHECK(is_new);
  RequestEntry& entry = place->second;
  entry.seq.id = request.id;
  entry.seq.tokens = std::move(request.prompt);
  entry.seq.prompt_tokens = static_cast<int32_t>(prompt_tokens);
  entry.max_new_tokens = request.max_new_tokens;
  entry.mode = request.mode;
  entry.cache = std::move(request.cache);
  const int64_t found_tokens = match_prefix(impl_->cache, entry).num_tokens();
  entry.expected_tokens = static_cast<int32_t>(prompt_tokens - found_tokens);
  entry.arrival = impl_->num_arrivals++;
  entry.last_turn = impl_->num_steps;
  requests.waiting.insert(&entry);
  return Admission::kQueued;
}

bool Scheduler::has_work() const { return !impl_->requests.entries.empty(); }

StepPlan Scheduler::plan(int32_t prompt_budget) const {
  CHECK(!impl_->in_step);
  return StepPlanner(impl_->limits, impl_->requests, impl_->pool, impl_->cache, prompt_budget)
      .plan();
}

std::optional<std::vector<PageCopy>> Scheduler::begin(const StepPlan& plan) {
  CHECK(!impl_->in_step);
  std::vector<Taking> takings = impl_->takings(plan);
  if (!impl_->can_take(plan, takings)) return std::nullopt;
  for (const RequestId id : plan.preempted) impl_->preempt(impl_->entry(id));
  // All filed pages are shared before the first is evicted, those to be copied for as long.
  for (const Taking& taking : takings) {
    if (!taking.entry->seq.running) impl_->start_running(*taking.entry);
    impl_->share(*taking.entry, taking.match);
  }
  for (const Taking& taking : takings) {
    std::vector<PageId>& pages = taking.entry->seq.pages;
    while (std::ssize(pages) < taking.num_pages) pages.push_back(impl_->take_page());
  }
  std::vector<PageCopy> copies;
  for (const Taking& taking : takings) {
    const auto& copied = taking.match.copied;
    if (!copied) continue;
    const PageId own = taking.entry->seq.pages[taking.entry->chain.size()];
    copies.push_back({copied->page, own, copied->num_tokens});
    impl_->pool.give_back(copied->page);
  }
  impl_->in_step = true;
  return copies;
}

std::vector<ExchangedPage> Scheduler::commit(const StepPlan& plan,
                                             std::span<const StepResult> results) {
  CHECK(impl_->in_step && results.size() == plan.steps.size());
  impl_->in_step = false;
  ++impl_->num_steps;
  std::vector<ExchangedPage> exchanged;
  for (size_t i = 0; i < results.size(); ++i) impl_->apply(plan.steps[i], results[i], exchanged);
  return exchanged;
}

void Scheduler::end(RequestId id) {
  CHECK(!impl_->in_step);
  const auto found = impl_->requests.entries.find(static_cast<uint64_t>(id));
  if (found != impl_->requests.entries.end()) impl_->forget(found->second);
}

const ScheduledSequence* Scheduler::find(RequestId id) const {
  const auto found = impl_->requests.entries.find(static_cast<uint64_t>(id));
  return found == impl_->requests.entries.end() ? nullptr : &found->second.seq;
}

int64_t Scheduler::num_running() const { return std::ssize(impl_->requests.running); }

int64_t Scheduler::num_waiting() const {
  return std::ssize(impl_->requests.waiting) + std::ssize(impl_->requests.interrupted);
}

std::vector<Taking> Scheduler::Impl::takings(const StepPlan& plan) {
  std::vector<Taking> all;
  const auto add_matched = [&](RequestId id, int64_t computed_tokens) {
    RequestEntry& e = entry(id);
    PrefixMatch match = match_prefix(cache, e);
    const int64_t held_tokens = std::ssize(e.chain) * kPageTokens;
    // The plan has no room for it.
    if (held_tokens + match.num_tokens() > computed_tokens) match.copied.reset();
    CHECK(held_tokens + match.num_tokens() == computed_tokens);
    all.push_back({&e, std::move(match), e.pages_at_admission()});
  };
  for (const PlannedAdmission& admission : plan.admitted) {
    add_matched(admission.id, admission.cached_tokens);
  }
  for (const PlannedAdoption& adoption : plan.adopted) {
    add_matched(adoption.id, adoption.computed_tokens);
  }
  for (const SequenceStep& step : plan.steps) {
    RequestEntry& e = entry(step.id);
    const int64_t num_pages = pages_for(step.begin + step.num_tokens);
    if (num_pages <= e.pages_at_admission()) continue;
    const auto taking = std::ranges::find(all, &e, &Taking::entry);
    if (taking == all.end()) {
      all.push_back({&e, {}, num_pages});
    } else {
      taking->num_pages = num_pages;
    }
  }
  return all;
}

bool Scheduler::Impl::can_take(const StepPlan& plan, std::span<const Taking> takings) {
  PageBudget budget(pool, cache);
  for (const RequestId id : plan.preempted) budget.release(entry(id).seq.pages);
  int64_t new_pages = 0;
  for (const Taking& taking : takings) {
    const RequestEntry& e = *taking.entry;
    budget.share(taking.match.used_pages());
    const auto own = std::span(e.seq.pages).subspan(e.chain.size());
    budget.release(own.first(std::min(own.size(), taking.match.pages.size())));
    new_pages +=
        taking.num_pages - std::max(e.num_pages(), std::ssize(e.chain) + taking.match.num_pages());
  }
  return budget.take(new_pages);
}

void Scheduler::Impl::preempt(RequestEntry& e) {
  std::erase(requests.running, &e);
  release_pages(e);
  ++e.seq.num_preemptions;
  requests.interrupted.insert(&e);
}

void Scheduler::Impl::start_running(RequestEntry& e) {
  if (e.seniority) {
    requests.interrupted.erase(&e);
  } else {
    requests.waiting.erase(&e);
    e.seniority = num_admissions++;
  }
  e.seq.running = true;
  const auto place = std::ranges::upper_bound(requests.running, &e, FirstAdmitted());
  requests.running.insert(place, &e);
}

// Goes on behind the filed pages, in place of its own.
void Scheduler::Impl::share(RequestEntry& e, const PrefixMatch& match) {
  for (int64_t i = 0; i < match.num_pages(); ++i) {
    const auto page_idx = e.chain.size();
    const PageId page = match.pages[static_cast<size_t>(i)];
    pool.share(page);
    if (page_idx < e.seq.pages.size()) {
      pool.give_back(std::exchange(e.seq.pages[page_idx], page));
    } else {
      e.seq.pages.push_back(page);
    }
    const PrefixCache::NodeId node = match.nodes[static_cast<size_t>(i)];
    e.chain.push_back(node);
    e.made.resize(std::max(e.made.size(), e.chain.size()), PageKind::kDense);
    e.made[page_idx] = cache.make(node);
  }
  if (match.copied) pool.share(match.copied->page);
  e.seq.computed_tokens += match.num_tokens();
  if (e.seq.num_preemptions == 0) e.seq.cached_tokens += match.num_tokens();
}

PageId Scheduler::Impl::take_page() {
  std::optional<PageId> page = pool.take();
  if (!page) {
    CHECK(cache.evict_one());
    page = pool.take();
  }
  return page.value();
}

void Scheduler::Impl::apply(const SequenceStep& step, const StepResult& result,
                            std::vector<ExchangedPage>& exchanged) {
  RequestEntry& e = entry(step.id);
  CHECK(e.seq.running && e.seq.computed_tokens == step.begin);
  CHECK(result.ended || result.next_token.has_value() == step.wants_token);
  e.seq.computed_tokens += step.num_tokens;
  if (step.phase == Phase::kPrompt) e.last_turn = num_steps;
  file_pages(e, exchanged);
  if (step.phase == Phase::kPrompt && !e.in_prompt()) file_open_page(e);
  if (result.ended) {
    std::erase_if(exchanged, [&](const ExchangedPage& page) { return page.id == step.id; });
    forget(e);
  } else if (result.next_token) {
    e.seq.tokens.push_back(*result.next_token);
    CHECK(std::ssize(e.seq.tokens) <= e.seq.prompt_tokens + e.max_new_tokens);
  }
}

void Scheduler::Impl::file_pages(RequestEntry& e, std::vector<ExchangedPage>& exchanged) {
  const auto num_full = static_cast<size_t>(e.seq.computed_tokens / kPageTokens);
  for (size_t i = e.chain.size(); i < num_full; ++i) {
    if (e.open) cache.remove_open(*std::exchange(e.open, std::nullopt));
    const PrefixCache::NodeId parent = i == 0 ? cache.root(e.cache.scope) : e.chain.back();
    const auto tokens = std::span(e.seq.tokens).subspan(i * kPageTokens, kPageTokens);
    const PageMake make = own_make(e.mode, e.seq.prompt_tokens, static_cast<int64_t>(i));
    const PrefixCache::NodeId node = cache.insert(parent, tokens, make, e.seq.pages[i]);
    const PageId filed = cache.page(node);
    if (filed != e.seq.pages[i]) {
      pool.share(filed);
      pool.give_back(std::exchange(e.seq.pages[i], filed));
      exchanged.push_back({e.seq.id, static_cast<int32_t>(i)});
    }
    e.chain.push_back(node);
    e.made.resize(std::max(e.made.size(), e.chain.size()), PageKind::kDense);
    e.made[i] = make;
  }
}

void Scheduler::Impl::file_open_page(RequestEntry& e) {
  const auto begin = e.chain.size() * kPageTokens;
  const auto prompt = std::span(e.seq.tokens).first(static_cast<size_t>(e.seq.prompt_tokens));
  if (begin == prompt.size()) return;
  const PrefixCache::NodeId parent = begin == 0 ? cache.root(e.cache.scope) : e.chain.back();
  e.open = cache.insert_open(parent, prompt.subspan(begin), e.seq.pages[e.chain.size()]);
}

// The one way in which a request lets go of its pages. From the last to the first, so that those
// that stand below others in the cache are the first to be evicted.
void Scheduler::Impl::release_pages(RequestEntry& e) {
  for (; !e.seq.pages.empty(); e.seq.pages.pop_back()) pool.give_back(e.seq.pages.back());
  e.chain.clear();
  e.open.reset();
  e.seq.computed_tokens = 0;
  e.seq.running = false;
}

void Scheduler::Impl::forget(RequestEntry& e) {
  if (e.seq.running) {
    std::erase(requests.running, &e);
    release_pages(e);
  } else if (e.seniority) {
    requests.interrupted.erase(&e);
  } else {
    requests.waiting.erase(&e);
  }
  requests.entries.erase(static_cast<uint64_t>(e.seq.id));
}

void Scheduler::check_invariants() const {
  const Impl& s = *impl_;
  s.pool.check_invariants();
  s.cache.check_invariants();
  CHECK(std::ssize(s.requests.entries) == num_running() + num_waiting());

  std::vector<int32_t> holders(static_cast<size_t>(s.pool.num_pages()), 0);
  for (const auto& [id, entry] : s.requests.entries) {
    s.check_request(entry);
    for (const PageId page : entry.seq.pages) ++holders[static_cast<size_t>(page)];
  }
  int64_t num_live = 0;
  int64_t num_filed = 0;
  for (size_t i = 0; i < holders.size(); ++i) {
    const int32_t others = s.pool.num_owners(PageId{static_cast<int32_t>(i)}) - holders[i];
    CHECK(others == 0 || others == 1);  // the cache
    num_filed += others;
    num_live += holders[i] > 0 ? 1 : 0;
  }
  CHECK(num_filed == s.cache.num_filed());
  CHECK(s.pool.num_free() + s.cache.num_evictable() + num_live == s.pool.num_pages());
}

void Scheduler::Impl::check_request(const RequestEntry& e) const {
  CHECK(e.seq.computed_tokens < std::ssize(e.seq.tokens));
  CHECK(e.seq.cached_tokens < e.seq.prompt_tokens);
  if (!e.seq.running) {
    CHECK(e.seq.pages.empty() && e.chain.empty() && !e.open && e.seq.computed_tokens == 0);
    return;
  }
  CHECK(std::ranges::count(requests.running, &e) == 1);
  CHECK(e.num_pages() == e.pages_at_admission());
  CHECK(std::ssize(e.chain) == e.seq.computed_tokens / kPageTokens);
  for (size_t i = 0; i < e.chain.size(); ++i) CHECK(cache.page(e.chain[i]) == e.seq.pages[i]);
  CHECK(!e.open || cache.page(*e.open) == e.seq.pages[e.chain.size()]);
}

}  // namespace winnow
