// Grammar: which byte strings an answer may be, as rules over bytes that may call each other.
// Built once per request format, then read only.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"

namespace winnow {

using StateId = int32_t;
using RuleId = int32_t;

// A control token that a grammar may ask for is spelt as kControlByte and its index: 0xFF is in no
// text, so control tokens come where the grammar names them and nowhere else.
inline constexpr uint8_t kControlByte = 0xFF;

struct ByteEdge {
  uint8_t first = 0;
  uint8_t last = 0;  // inclusive
  StateId target = 0;
};

struct GrammarState {
  enum class Kind : uint8_t {
    kBytes,   // goes on with a byte of one of `edges`; none = a dead end
    kSplit,   // goes on as any of `targets`
    kCall,    // `rule`, then `next`
    kRepeat,  // `rule` min to max times, then `next`; max = kEndless: no upper limit
    kReturn,  // the rule is done
  };
  Kind kind = Kind::kBytes;
  RuleId rule = 0;
  StateId next = 0;
  int32_t min = 0;
  int32_t max = 0;
  // kRepeat whose rule takes, among others, every plain character: well-formed UTF-8, no quote, no
  // backslash, not below a blank. What it takes can then be looked up instead of walked through.
  bool takes_plain = false;
  std::vector<ByteEdge> edges = {};
  std::vector<StateId> targets = {};
  // Stack frames that the rest of the rule needs at least; kImpossible = it can never be done.
  int32_t need = 0;
};

inline constexpr int32_t kEndless = std::numeric_limits<int32_t>::max();
inline constexpr int32_t kImpossible = std::numeric_limits<int32_t>::max();

// Calls and repetitions within each other that an answer may have.
inline constexpr int32_t kMaxFrames = 256;
inline constexpr int32_t kMaxGrammarStates = 1 << 17;

class Grammar {
 public:
  const GrammarState& state(StateId id) const { return states_[static_cast<size_t>(id)]; }
  // First state of a rule.
  StateId start(RuleId rule) const { return starts_[static_cast<size_t>(rule)]; }
  RuleId root() const { return root_; }
  int32_t num_states() const { return static_cast<int32_t>(states_.size()); }

  // Bytes of one class are alike to every state.
  uint8_t byte_class(uint8_t byte) const { return classes_[byte]; }
  int32_t num_classes() const { return num_classes_; }

 private:
  friend class GrammarBuilder;
  std::vector<GrammarState> states_;
  std::vector<StateId> starts_;
  std::array<uint8_t, 256> classes_{};
  int32_t num_classes_ = 0;
  RuleId root_ = 0;
};

// Builds rules from their ends: every function makes the state from which the named thing leads to
// `next`. A grammar that grows past kMaxGrammarStates stops growing, and finish() refuses it.
class GrammarBuilder {
 public:
  RuleId declare_rule();
  void define_rule(RuleId rule, StateId start);
  bool is_full() const { return full_; }

  StateId done();  // the end of a rule; one state for all
  StateId dead_end();
  StateId bytes(uint8_t first, uint8_t last, StateId next);
  StateId byte_edges(std::vector<ByteEdge> edges);
  StateId literal(std::string_view text, StateId next);
  StateId call(RuleId rule, StateId next);
  // Requires 0 <= min <= max.
  StateId repeat(RuleId rule, int32_t min, int32_t max, StateId next);
  // The same of anything: states_of(end) makes the states of one round that go on at `end`. Short
  // forms need no rule.
  StateId repeat(FunctionRef<StateId(StateId)> states_of, int32_t min, int32_t max, StateId next);
  // The same of a rule that takes every plain character. What follows begins with none, unless max
  // is kEndless.
  StateId repeat_plain(RuleId rule, int32_t min, int32_t max, StateId next);
  StateId split(std::vector<StateId> targets);
  StateId optional(StateId start, StateId next) { return split({start, next}); }
  // A split to be defined later: for loops.
  StateId open_split();
  void define_split(StateId split, std::vector<StateId> targets);

  // Rules of which each calls the next, and the last the first, before any byte; empty if there are
  // none. Requires that every declared rule is defined.
  std::vector<RuleId> left_recursion() const;

  // kInvalidArgument if no finite text follows `root`, if a rule calls itself before any byte, or
  // if the grammar is too large. Requires that every declared rule is defined.
  Result<Grammar> finish(RuleId root) &&;

 private:
  StateId add(GrammarState state);
  std::vector<bool> skippable_states() const;
  void measure_needs();
  void classify_bytes();

  Grammar grammar_;
  bool full_ = false;
  StateId done_ = -1;
};

}  // namespace winnow
