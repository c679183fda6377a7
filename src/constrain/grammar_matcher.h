// GrammarMatcher: what may follow a text under a grammar. All ways to read the text so far are one
// configuration; configurations and their transitions are made when they are first needed and kept.
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "constrain/grammar.h"

namespace winnow {

// A configuration: an index that is valid until the matcher's next shrink().
using ConfigId = int32_t;
inline constexpr ConfigId kDeadConfig = -1;

// Not thread-safe. Never recurses. What it keeps is bounded by shrink(), which the owner calls.
//
// A text may be readable in very many ways; those past kMaxThreads, and those that a step finds
// after kMaxStepWork, are forgotten, which narrows what may follow and never widens it. Every way
// that is kept can be finished within kMaxFrames.
class GrammarMatcher {
 public:
  static constexpr size_t kMaxThreads = 1024;
  // Of one step, besides looking at the edges of its threads.
  static constexpr int64_t kMaxStepWork = 16 * static_cast<int64_t>(kMaxThreads);
  // Edges are looked at in order, threads wherever they are.
  static constexpr int64_t kEdgesPerWork = 16;

  // `grammar` outlives the matcher.
  explicit GrammarMatcher(const Grammar& grammar);

  // The empty text's.
  ConfigId start();
  // After one more byte; kDeadConfig if it may not come.
  ConfigId step(ConfigId config, uint8_t byte) {
    const uint8_t byte_class = grammar_.byte_class(byte);
    const ConfigId known = transitions_[static_cast<size_t>(config) * num_classes_ + byte_class];
    return known != kUnknown ? known : make_step(config, byte, byte_class);
  }
  // Whether the text may end here.
  bool accepts(ConfigId config) const { return configs_[static_cast<size_t>(config)].accepts; }
  // Whether only the end may come.
  bool is_complete(ConfigId config) const {
    const Config& found = configs_[static_cast<size_t>(config)];
    return found.accepts && found.threads.empty();
  }
  // How many plain characters may come whatever they are, and no more than that; 0 if that is not
  // known.
  int32_t num_free_characters(ConfigId config) const {
    return configs_[static_cast<size_t>(config)].num_free_characters;
  }

  // The bytes that may come next; costs no step.
  std::bitset<256> next_bytes(ConfigId config);

  // Work done so far: ways to read the text that were followed, whether or not they were new, and
  // edges looked at, kEdgesPerWork of them as one.
  int64_t work() const { return work_; }
  size_t kept_bytes() const { return kept_bytes_; }
  // Forgets all configurations but this one; returns its new index.
  ConfigId shrink(ConfigId config);

 private:
  static constexpr ConfigId kUnknown = -2;
  static constexpr int32_t kNoFrame = 0;

  // One way to read the text: a state of kind kBytes and the calls it is in.
  struct Thread {
    StateId state = 0;
    int32_t count = 0;  // of a kRepeat state: repetitions done
    int32_t frame = kNoFrame;
    friend auto operator<=>(const Thread&, const Thread&) = default;
  };
  struct Frame {
    Thread back;  // where to go on, itself within back.frame
    int32_t depth = 0;
  };
  struct Config {
    std::vector<Thread> threads;  // sorted, unique
    bool accepts = false;
    int32_t num_free_characters = 0;
  };
  // A configuration in the making.
  struct Closure {
    std::vector<Thread> open;  // still to be followed
    int64_t work_left = kMaxStepWork;
    Config config;
  };
  struct ThreadHash {
    size_t operator()(const Thread& thread) const;
  };

  ConfigId make_step(ConfigId config, uint8_t byte, uint8_t byte_class);
  ConfigId intern(Config config);
  Config close(std::vector<Thread> kernel);
  static void follow_later(const Thread& thread, Closure& closure);
  void expand(const Thread& thread, Closure& closure);
  void enter_rule(const Thread& thread, const Thread& back, Closure& closure);
  void count_edges(const Config& config);
  int32_t push_frame(const Thread& back);
  bool can_finish(StateId state, int32_t frame) const;
  int32_t free_characters_after(Thread thread) const;

  const Grammar& grammar_;
  size_t num_classes_;
  std::vector<Frame> frames_;
  std::unordered_map<Thread, int32_t, ThreadHash> frame_index_;
  std::vector<Config> configs_;
  std::unordered_multimap<size_t, ConfigId> config_index_;
  std::vector<ConfigId> transitions_;  // [configs][classes]
  int64_t work_ = 0;
  size_t kept_bytes_ = 0;
};

}  // namespace winnow
