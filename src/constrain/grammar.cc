#include "constrain/grammar.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace winnow {
namespace {

using Kind = GrammarState::Kind;

// The states whose property follows from that of each state, as one flat list.
class Dependents {
 public:
  explicit Dependents(const Grammar& grammar);
  std::span<const StateId> of(StateId state) const {
    const auto idx = static_cast<size_t>(state);
    return {list_.data() + begins_[idx], begins_[idx + 1] - begins_[idx]};
  }

 private:
  std::vector<size_t> begins_;
  std::vector<StateId> list_;
};

// Calls visit(target) for every state that `state` leads to, the start of a called rule included.
template <class Visit>
void for_each_target(const Grammar& grammar, const GrammarState& state, Visit visit) {
  switch (state.kind) {
    case Kind::kBytes:
      for (const ByteEdge& edge : state.edges) visit(edge.target);
      return;
    case Kind::kSplit:
      for (const StateId target : state.targets) visit(target);
      return;
    case Kind::kCall:
    case Kind::kRepeat:
      visit(grammar.start(state.rule));
      visit(state.next);
      return;
    case Kind::kReturn:
      return;
  }
}

Dependents::Dependents(const Grammar& grammar) {
  const auto num_states = static_cast<size_t>(grammar.num_states());
  begins_.assign(num_states + 2, 0);
  for (StateId id = 0; id < grammar.num_states(); ++id) {
    for_each_target(grammar, grammar.state(id),
                    [&](StateId target) { ++begins_[static_cast<size_t>(target) + 2]; });
  }
  for (size_t i = 2; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  list_.resize(begins_.back());
  for (StateId id = 0; id < grammar.num_states(); ++id) {
    for_each_target(grammar, grammar.state(id), [&](StateId target) {
      list_[begins_[static_cast<size_t>(target) + 1]++] = id;
    });
  }
}

// What a call or a repetition needs, by what it leads to.
int32_t need_of_call(const Grammar& grammar, const GrammarState& state) {
  const int32_t next = grammar.state(state.next).need;
  if (state.kind == Kind::kRepeat && state.min == 0) return next;
  const int32_t rule = grammar.state(grammar.start(state.rule)).need;
  return rule == kImpossible ? kImpossible : std::max(rule + 1, next);
}

}  // namespace

RuleId GrammarBuilder::declare_rule() {
  grammar_.starts_.push_back(-1);
  return static_cast<RuleId>(grammar_.starts_.size()) - 1;
}

void GrammarBuilder::define_rule(RuleId rule, StateId start) {
  grammar_.starts_[static_cast<size_t>(rule)] = start;
}

StateId GrammarBuilder::add(GrammarState state) {
  if (grammar_.num_states() >= kMaxGrammarStates) {
    full_ = true;
    return 0;
  }
  grammar_.states_.push_back(std::move(state));
  return grammar_.num_states() - 1;
}

StateId GrammarBuilder::done() {
  if (done_ < 0) done_ = add({.kind = Kind::kReturn});
  return done_;
}

StateId GrammarBuilder::dead_end() { return add({.kind = Kind::kBytes}); }

StateId GrammarBuilder::bytes(uint8_t first, uint8_t last, StateId next) {
  return byte_edges({{first, last, next}});
}

StateId GrammarBuilder::byte_edges(std::vector<ByteEdge> edges) {
  return add({.kind = Kind::kBytes, .edges = std::move(edges)});
}

StateId GrammarBuilder::literal(std::string_view text, StateId next) {
  for (size_t i = text.size(); i-- > 0 && !full_;) {
    const auto byte = static_cast<uint8_t>(text[i]);
    next = bytes(byte, byte, next);
  }
  return next;
}

StateId GrammarBuilder::call(RuleId rule, StateId next) {
  return add({.kind = Kind::kCall, .rule = rule, .next = next});
}

StateId GrammarBuilder::repeat(RuleId rule, int32_t min, int32_t max, StateId next) {
  CHECK(0 <= min && min <= max);
  return add({.kind = Kind::kRepeat, .rule = rule, .next = next, .min = min, .max = max});
}

StateId GrammarBuilder::repeat(FunctionRef<StateId(StateId)> states_of, int32_t min, int32_t max,
                               StateId next) {
  if (min == 0 && max == 1) return optional(states_of(next), next);
  if (min <= 1 && max == kEndless) {
    const StateId loop = open_split();
    const StateId start = states_of(loop);
    define_split(loop, {start, next});
    return min == 0 ? loop : start;
  }
  const RuleId rule = declare_rule();
  define_rule(rule, states_of(done()));
  return repeat(rule, min, max, next);
}

StateId GrammarBuilder::repeat_plain(RuleId rule, int32_t min, int32_t max, StateId next) {
  const StateId id = repeat(rule, min, max, next);
  if (!full_) grammar_.states_[static_cast<size_t>(id)].takes_plain = true;
  return id;
}

StateId GrammarBuilder::split(std::vector<StateId> targets) {
  const StateId id = open_split();
  define_split(id, std::move(targets));
  return id;
}

StateId GrammarBuilder::open_split() { return add({.kind = Kind::kSplit}); }

void GrammarBuilder::define_split(StateId split, std::vector<StateId> targets) {
  if (full_) return;
  std::unordered_set<StateId> met;
  std::erase_if(targets, [&](StateId target) { return !met.insert(target).second; });
  grammar_.states_[static_cast<size_t>(split)].targets = std::move(targets);
}

// Which states can reach the end of their rule without a byte.
std::vector<bool> GrammarBuilder::skippable_states() const {
  const auto num_states = static_cast<size_t>(grammar_.num_states());
  std::vector<bool> skippable(num_states, false);
  const Dependents dependents(grammar_);
  std::vector<StateId> open;
  const auto mark = [&](StateId id) {
    if (skippable[static_cast<size_t>(id)]) return;
    skippable[static_cast<size_t>(id)] = true;
    open.push_back(id);
  };
  const auto is = [&](StateId id) { return skippable[static_cast<size_t>(id)]; };
  for (StateId id = 0; id < grammar_.num_states(); ++id) {
    if (grammar_.state(id).kind == Kind::kReturn) mark(id);
  }
  while (!open.empty()) {
    const StateId ready = open.back();
    open.pop_back();
    for (const StateId id : dependents.of(ready)) {
      const GrammarState& state = grammar_.state(id);
      if (state.kind == Kind::kBytes) continue;
      const bool calls = state.kind == Kind::kCall || state.kind == Kind::kRepeat;
      const bool rule_done = !calls || is(grammar_.start(state.rule)) ||
                             (state.kind == Kind::kRepeat && state.min == 0);
      if (rule_done && (!calls || is(state.next))) mark(id);
    }
  }
  return skippable;
}

// Searches the states that are reached without a byte, calls entered, for a way back to a state
// that is still being searched from, through a call.
std::vector<RuleId> GrammarBuilder::left_recursion() const {
  const std::vector<bool> skippable = skippable_states();
  enum class Mark : uint8_t { kNew, kOpen, kClosed };
  std::vector<Mark> marks(grammar_.starts_.size(), Mark::kNew);
  // Rules that `rule` may call before any byte.
  const auto first_calls = [&](RuleId rule) {
    std::vector<RuleId> called;
    std::vector<StateId> open = {grammar_.start(rule)};
    std::map<StateId, bool> seen;
    while (!open.empty()) {
      const StateId id = open.back();
      open.pop_back();
      if (std::exchange(seen[id], true)) continue;
      const GrammarState& state = grammar_.state(id);
      if (state.kind == Kind::kSplit) {
        open.insert(open.end(), state.targets.begin(), state.targets.end());
      } else if (state.kind == Kind::kCall || state.kind == Kind::kRepeat) {
        called.push_back(state.rule);
        const bool skips = skippable[static_cast<size_t>(grammar_.start(state.rule))] ||
                           (state.kind == Kind::kRepeat && state.min == 0);
        if (skips) open.push_back(state.next);
      }
    }
    return called;
  };
  struct Visit {
    RuleId rule;
    std::vector<RuleId> called;
  };
  for (RuleId first = 0; first < static_cast<RuleId>(marks.size()); ++first) {
    if (marks[static_cast<size_t>(first)] != Mark::kNew) continue;
    std::vector<Visit> path;
    const auto enter = [&](RuleId rule) {
      marks[static_cast<size_t>(rule)] = Mark::kOpen;
      path.push_back({rule, first_calls(rule)});
    };
    enter(first);
    while (!path.empty()) {
      if (path.back().called.empty()) {
        marks[static_cast<size_t>(path.back().rule)] = Mark::kClosed;
        path.pop_back();
        continue;
      }
      const RuleId called = path.back().called.back();
      path.back().called.pop_back();
      const Mark mark = marks[static_cast<size_t>(called)];
      if (mark == Mark::kOpen) {
        std::vector<RuleId> cycle;
        for (const Visit& visit : path) {
          if (visit.rule == called || !cycle.empty()) cycle.push_back(visit.rule);
        }
        return cycle;
      }
      if (mark == Mark::kNew) enter(called);
    }
  }
  return {};
}

// In the order of the needs, so that each state is looked at once from every state it leads to.
void GrammarBuilder::measure_needs() {
  const Dependents dependents(grammar_);
  std::vector<StateId> open, deeper;  // states that need `need` frames, and one more
  for (StateId id = 0; id < grammar_.num_states(); ++id) {
    GrammarState& state = grammar_.states_[static_cast<size_t>(id)];
    state.need = kImpossible;
    if (state.kind == Kind::kReturn) deeper.push_back(id);
  }
  for (int32_t need = 0; !deeper.empty(); ++need) {
    const auto settle = [&](StateId id) {
      int32_t& known = grammar_.states_[static_cast<size_t>(id)].need;
      if (known == kImpossible) open.push_back(id);
      known = std::min(known, need);
    };
    for (const StateId id : std::exchange(deeper, {})) settle(id);
    while (!open.empty()) {
      const StateId settled = open.back();
      open.pop_back();
      for (const StateId id : dependents.of(settled)) {
        const GrammarState& state = grammar_.state(id);
        const bool calls = state.kind == Kind::kCall || state.kind == Kind::kRepeat;
        const int32_t found = calls ? need_of_call(grammar_, state) : need;
        if (found <= need) settle(id);
        if (found == need + 1) deeper.push_back(id);
      }
    }
  }
}

void GrammarBuilder::classify_bytes() {
  std::bitset<257> borders;
  for (const GrammarState& state : grammar_.states_) {
    for (const ByteEdge& edge : state.edges) {
      borders.set(edge.first);
      borders.set(static_cast<size_t>(edge.last) + 1);
    }
  }
  int32_t current = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && borders[byte]) ++current;
    grammar_.classes_[byte] = static_cast<uint8_t>(current);
  }
  grammar_.num_classes_ = current + 1;
}

Result<Grammar> GrammarBuilder::finish(RuleId root) && {
  if (full_) {
    return fail(ErrorCode::kInvalidArgument,
                "expected a format of at most %d states, found a larger one", kMaxGrammarStates);
  }
  for (const StateId start : grammar_.starts_) CHECK(start >= 0);
  grammar_.root_ = root;
  if (!left_recursion().empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "expected every reference to reach a value, found one that leads back to itself "
                "first");
  }
  measure_needs();
  const int32_t need = grammar_.state(grammar_.start(root)).need;
  if (need == kImpossible) {
    return fail(ErrorCode::kInvalidArgument, "expected a format that some text has, found none");
  }
  if (need > kMaxFrames) {
    return fail(ErrorCode::kInvalidArgument,
                "expected values within each other at most %d deep, found %d", kMaxFrames, need);
  }
  classify_bytes();
  return std::move(grammar_);
}

}  // namespace winnow
