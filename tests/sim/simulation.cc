#include "sim/simulation.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "engine/scheduler.h"
#include "kv/kv_store.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"
#include "sim/dice.h"
#include "sim/fake_pages.h"
#include "sim/sim_settings.h"

namespace winnow::sim {
namespace {

// One that comes back only when its answer has room to grow is seldom pushed out again; one that
// comes back at once is, dozens of times.
constexpr int64_t kMostPreemptions = 6;

// A request, with what a run of it alone gives.
struct Client {
  SimRequest asked;
  int32_t prompt_tokens = 0;
  std::vector<TokenId> tokens;
  Slot last_alone;
  Reading alone;  // of tokens [0, num_read)
  int64_t num_read = 0;
  std::vector<PageId> table;  // as last told
  int64_t admission = -1;
  int32_t num_preemptions = 0;

  Run run_of(int64_t position) const {
    const PromptMode& mode = asked.request.mode;
    if (position >= prompt_tokens) return Run::kGenerated;
    const bool sparse =
        mode.has_sparse_rows() && position >= mode.rule->dense_tokens && position < mode.sparse_end;
    return sparse ? Run::kSparse : Run::kDense;
  }
  void read_alone() {
    for (; num_read < std::ssize(tokens); ++num_read) {
      const TokenId token = tokens[static_cast<size_t>(num_read)];
      last_alone = next_slot(num_read == 0 ? nullptr : &last_alone, token, run_of(num_read),
                             asked.scope, kPageTokens);
      alone.add(last_alone);
    }
  }
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed)
      : dice_(seed),
        settings_(SimSettings::of(dice_)),
        source_(settings_, dice_),
        pool_(settings_.num_pages),
        cache_(pool_, seed, settings_.hash_bits),
        scheduler_(settings_.limits, pool_, cache_),
        pages_(settings_.num_pages) {}

  SimOutcome run();

 private:
  void arrive();
  void cancel();
  void step();
  bool begin(const StepPlan& plan);
  void check_plan(const StepPlan& plan, int32_t budget);
  void check_step(const SequenceStep& step);
  void check_preempted(const StepPlan& plan);
  void note_tables(const StepPlan& plan);
  void copy(const PageCopy& copy);
  void write(const SequenceStep& step);
  StepResult result(const SequenceStep& step);
  Reading shown(const Client& client, int64_t num_tokens);
  void check_exchanges(const StepPlan& plan, const std::vector<ExchangedPage>& exchanged);
  void close(RequestId id);
  int64_t num_live() const { return pool_.num_pages() - pool_.num_free() - cache_.num_evictable(); }

  void expect(bool holds, const char* what) {
    if (!holds && outcome_.failure.empty()) outcome_.failure = what;
  }
  void trace(uint64_t value) { outcome_.trace = mixed(outcome_.trace, value); }

  Dice dice_;
  SimSettings settings_;
  RequestSource source_;
  PagePool pool_;
  PrefixCache cache_;
  Scheduler scheduler_;
  FakePages pages_;
  std::map<RequestId, Client> clients_;
  int64_t num_requests_ = 0;
  int64_t num_admissions_ = 0;
  int64_t idle_steps_ = 0;  // since the last token
  SimOutcome outcome_;
};

SimOutcome Simulation::run() {
  // A lone request may have all its tokens to rerun before it gives the next one.
  const int64_t patience =
      1000 + settings_.num_pages * kPageTokens / settings_.limits.max_rerun_tokens;
  while (outcome_.failure.empty()) {
    if (num_requests_ < settings_.num_requests && dice_.one_in(settings_.arrival_steps)) arrive();
    if (settings_.cancel_steps > 0 && dice_.one_in(settings_.cancel_steps)) cancel();
    if (scheduler_.has_work()) {
      step();
      expect(++idle_steps_ <= patience, "no progress");
    } else if (num_requests_ == settings_.num_requests) {
      break;
    }
    scheduler_.check_invariants();
  }
  if (outcome_.failure.empty()) expect(num_live() == 0, "pages are live when all is done");
  return outcome_;
}

void Simulation::arrive() {
  Client client;
  client.asked = source_.next(RequestId{static_cast<uint64_t>(++num_requests_)});
  const ScheduledRequest& request = client.asked.request;
  client.prompt_tokens = static_cast<int32_t>(request.prompt.size());
  client.tokens = request.prompt;
  const bool full = scheduler_.num_waiting() >= settings_.limits.max_waiting;
  const bool fits = std::ssize(request.prompt) + request.max_new_tokens <= scheduler_.most_tokens();
  const Admission admission = scheduler_.submit(request);
  expect(admission == (!fits  ? Admission::kNeverFits
                       : full ? Admission::kQueueFull
                              : Admission::kQueued),
         "a wrong answer to a submission");
  if (admission == Admission::kQueued) clients_.emplace(request.id, std::move(client));
}

void Simulation::cancel() {
  if (clients_.empty()) return;
  const auto victim = std::next(clients_.begin(), dice_.between(0, std::ssize(clients_) - 1));
  scheduler_.end(victim->first);
  close(victim->first);
}

void Simulation::step() {
  ++outcome_.num_steps;
  const auto budget = static_cast<int32_t>(
      settings_.budget ? *settings_.budget : dice_.one_of({0, 1, 128, 200, 384, 1000}));
  const StepPlan plan = scheduler_.plan(budget);
  expect(!plan.empty(), "an empty plan while there is work");
  check_plan(plan, budget);
  if (!outcome_.failure.empty() || !begin(plan)) return;
  note_tables(plan);
  std::vector<StepResult> results;
  for (const SequenceStep& step : plan.steps) {
    check_step(step);
    if (!outcome_.failure.empty()) return;
    write(step);
  }
  for (const SequenceStep& step : plan.steps) results.push_back(result(step));
  const std::vector<ExchangedPage> exchanged = scheduler_.commit(plan, results);
  check_exchanges(plan, exchanged);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].ended) close(plan.steps[i].id);
  }
}

// Now and then somebody else takes pages first.
bool Simulation::begin(const StepPlan& plan) {
  std::vector<PageId> stolen;
  const auto counts = [&] {
    return std::array{pool_.num_free(), cache_.num_filed(), cache_.num_evictable(),
                      scheduler_.num_running(), scheduler_.num_waiting()};
  };
  if (dice_.one_in(20)) {
    for (int64_t left = dice_.between(0, 6); left > 0 && pool_.num_free() > 0; --left) {
      stolen.push_back(*pool_.take());
    }
  }
  const auto before = counts();
  const std::optional<std::vector<PageCopy>> copies = scheduler_.begin(plan);
  const bool begun = copies.has_value();
  expect(begun || !stolen.empty(), "no pages for a plan just made");
  expect(begun || before == counts(), "a beginning that failed left something behind");
  for (const PageId page : stolen) pool_.give_back(page);
  if (!begun) return false;
  for (const PageCopy& page : *copies) copy(page);
  return true;
}

void Simulation::copy(const PageCopy& copy) {
  ++outcome_.num_copies;
  expect(copy.num_tokens > 0 && copy.num_tokens < kPageTokens, "a copy of nothing, or of all");
  expect(pool_.num_owners(copy.to) == 1, "a copy to a page of others");
  for (int64_t i = 0; i < copy.num_tokens; ++i) {
    pages_.slot(copy.to, i) = pages_.slot(copy.from, i);
  }
}

void Simulation::check_plan(const StepPlan& plan, int32_t budget) {
  check_preempted(plan);
  int64_t prompt_tokens = 0;
  std::set<RequestId> stepped;
  for (const SequenceStep& step : plan.steps) {
    stepped.insert(step.id);
    if (step.phase == Phase::kPrompt) prompt_tokens += step.num_tokens;
    trace(static_cast<uint64_t>(step.id) << 32 | static_cast<uint64_t>(step.begin));
  }
  expect(prompt_tokens <= pages_for(std::max(budget, 1)) * kPageTokens, "a step over its budget");
  for (const auto& [id, client] : clients_) {
    const ScheduledSequence& sequence = *scheduler_.find(id);
    if (!sequence.running || sequence.computed_tokens < client.prompt_tokens) continue;
    expect(stepped.contains(id) || std::ranges::count(plan.preempted, id) > 0,
           "a request that decodes is left out");
  }
}

void Simulation::check_preempted(const StepPlan& plan) {
  expect(plan.preempted.empty() || plan.admitted.empty(), "a step that preempts admits");
  for (const RequestId id : plan.preempted) {
    Client& client = clients_.at(id);
    ++client.num_preemptions;
    ++outcome_.num_preemptions;
    outcome_.most_preemptions =
        std::max<int64_t>(outcome_.most_preemptions, client.num_preemptions);
    expect(client.num_preemptions <= kMostPreemptions, "a request preempted again and again");
    for (const auto& [other_id, other] : clients_) {
      const bool stays =
          scheduler_.find(other_id)->running && std::ranges::count(plan.preempted, other_id) == 0;
      expect(!stays || other.admission < client.admission, "an older request gives way");
    }
  }
}

void Simulation::check_step(const SequenceStep& step) {
  const Client& client = clients_.at(step.id);
  const ScheduledSequence& sequence = *scheduler_.find(step.id);
  const int64_t end = step.begin + step.num_tokens;
  expect(sequence.tokens == client.tokens, "tokens that the client has not");
  expect(step.num_tokens >= 1 && end <= std::ssize(client.tokens), "a step without tokens");
  expect(step.wants_token == (end == std::ssize(client.tokens)), "a token wanted in vain");
  expect(std::ssize(client.table) >= pages_for(end), "a page table that ends before its step");
  if (step.begin < client.prompt_tokens) {
    expect(step.phase == Phase::kPrompt && end <= client.prompt_tokens, "no prompt step");
    expect(end % kPageTokens == 0 || end == client.prompt_tokens, "a chunk that ends in a page");
  } else {
    expect(step.phase == Phase::kGenerate && step.num_tokens == 1, "no step of one token");
  }
}

// What the plan has changed in the page tables, and nothing else may have.
void Simulation::note_tables(const StepPlan& plan) {
  for (const RequestId id : plan.preempted) clients_.at(id).table.clear();
  for (const PlannedAdmission& admission : plan.admitted) {
    Client& client = clients_.at(admission.id);
    const bool first = client.admission < 0;
    if (first) client.admission = num_admissions_++;
    expect(client.table.empty(), "an admission with pages");
    expect(admission.cached_tokens < std::ssize(client.tokens), "nothing left to compute");
    const bool reads = client.asked.request.cache.read;
    expect(reads || !first || admission.cached_tokens == 0, "the cache is read unasked");
    client.table = scheduler_.find(admission.id)->pages;
    outcome_.cached_tokens += admission.cached_tokens;
  }
  for (const PlannedAdoption& adoption : plan.adopted) {
    ++outcome_.num_adoptions;
    const std::vector<PageId>& pages = scheduler_.find(adoption.id)->pages;
    std::copy_n(pages.begin(), adoption.computed_tokens / kPageTokens,
                clients_.at(adoption.id).table.begin());
  }
  for (auto& [id, client] : clients_) {
    const std::vector<PageId>& pages = scheduler_.find(id)->pages;
    const bool grown = pages.size() >= client.table.size() &&
                       std::equal(client.table.begin(), client.table.end(), pages.begin());
    expect(grown, "a page changed untold");
    client.table = pages;
  }
}

void Simulation::write(const SequenceStep& step) {
  const Client& client = clients_.at(step.id);
  const int64_t end = step.begin + step.num_tokens;
  for (int64_t i = step.begin; i < end; ++i) {
    const int64_t page_begin = i / kPageTokens * kPageTokens;
    const int64_t together =
        std::min(end, page_begin + kPageTokens) - std::max<int64_t>(step.begin, page_begin);
    const Slot* before = i == 0 ? nullptr : &pages_.slot(client.table, i - 1);
    const Run run = step.phase == Phase::kGenerate ? Run::kGenerated : client.run_of(i);
    pages_.slot(client.table, i) =
        next_slot(before, client.tokens[static_cast<size_t>(i)], run, client.asked.scope, together);
  }
}

// What the client's page table shows of its first tokens.
Reading Simulation::shown(const Client& client, int64_t num_tokens) {
  Reading reading;
  for (int64_t i = 0; i < num_tokens; ++i) {
    const Slot& slot = pages_.slot(client.table, i);
    reading.add(slot);
    expect(slot.scope == client.asked.scope, "a page of another scope");
    // Prompt tokens may have been run more exactly, answers as what they are.
    const Run asked = client.run_of(i);
    expect(asked == Run::kGenerated ? slot.run == asked : slot.run >= asked, "a coarser page");
  }
  return reading;
}

StepResult Simulation::result(const SequenceStep& step) {
  StepResult result;
  if (!step.wants_token) return result;
  idle_steps_ = 0;
  Client& client = clients_.at(step.id);
  client.read_alone();
  const Reading reading = shown(client, std::ssize(client.tokens));
  expect(reading.next_token() == client.alone.next_token(), "another token than alone");
  expect(!client.asked.request.cache.exact || reading == client.alone, "other bits than alone");
  result.next_token = reading.next_token();
  trace(static_cast<uint64_t>(*result.next_token));
  client.tokens.push_back(*result.next_token);
  const int64_t answered = std::ssize(client.tokens) - client.prompt_tokens;
  result.ended = answered == client.asked.answer_tokens;
  outcome_.num_answers += result.ended ? 1 : 0;
  return result;
}

void Simulation::check_exchanges(const StepPlan& plan,
                                 const std::vector<ExchangedPage>& exchanged) {
  for (const ExchangedPage& page : exchanged) {
    ++outcome_.num_exchanges;
    const ScheduledSequence* sequence = scheduler_.find(page.id);
    expect(sequence != nullptr, "an exchange for a request that has ended");
    if (sequence == nullptr) return;
    const auto idx = static_cast<size_t>(page.page_idx);
    clients_.at(page.id).table.at(idx) = sequence->pages.at(idx);
  }
  for (const SequenceStep& step : plan.steps) {
    const ScheduledSequence* sequence = scheduler_.find(step.id);
    if (sequence == nullptr) continue;
    expect(sequence->pages == clients_.at(step.id).table, "a page exchanged untold");
    expect(
        std::ssize(sequence->pages) ==
            pages_for(std::max<int64_t>(sequence->prompt_tokens, std::ssize(sequence->tokens) - 1)),
        "more or fewer pages than tokens need");
  }
}

void Simulation::close(RequestId id) {
  expect(scheduler_.find(id) == nullptr, "a request that has ended is still there");
  source_.add_text(clients_.at(id).tokens);
  clients_.erase(id);
  idle_steps_ = 0;
}

}  // namespace

SimOutcome simulate(uint64_t seed) { return Simulation(seed).run(); }

}  // namespace winnow::sim
