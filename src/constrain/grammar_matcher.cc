#include "constrain/grammar_matcher.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/check.h"

namespace winnow {
namespace {

using Kind = GrammarState::Kind;

size_t mixed(size_t hash, uint64_t number) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15;
  hash = (hash ^ number) * kOdd;
  return hash ^ (hash >> 29);
}

// Threads that were met; few, mostly, and then a list is quicker than a hash table.
template <class Thread, class Hash>
class MetThreads {
 public:
  // Whether `thread` is new.
  bool insert(const Thread& thread) {
    if (list_.size() < kMaxListed) {
      if (std::find(list_.begin(), list_.end(), thread) != list_.end()) return false;
      list_.push_back(thread);
      return true;
    }
    if (table_.empty()) table_.insert(list_.begin(), list_.end());
    return table_.insert(thread).second;
  }

 private:
  static constexpr size_t kMaxListed = 24;
  std::vector<Thread> list_;
  std::unordered_set<Thread, Hash> table_;
};

}  // namespace

size_t GrammarMatcher::ThreadHash::operator()(const Thread& thread) const {
  const size_t hash = mixed(static_cast<size_t>(thread.frame), static_cast<uint64_t>(thread.state));
  return mixed(hash, static_cast<uint64_t>(thread.count));
}

GrammarMatcher::GrammarMatcher(const Grammar& grammar)
    : grammar_(grammar), num_classes_(static_cast<size_t>(grammar.num_classes())), frames_(1) {}

ConfigId GrammarMatcher::start() {
  return intern(close({{grammar_.start(grammar_.root()), 0, kNoFrame}}));
}

bool GrammarMatcher::can_finish(StateId state, int32_t frame) const {
  const int32_t need = grammar_.state(state).need;
  return need != kImpossible && need + frames_[static_cast<size_t>(frame)].depth <= kMaxFrames;
}

int32_t GrammarMatcher::push_frame(const Thread& back) {
  const auto [found, is_new] = frame_index_.try_emplace(back, static_cast<int32_t>(frames_.size()));
  if (is_new) {
    frames_.push_back({back, frames_[static_cast<size_t>(back.frame)].depth + 1});
    kept_bytes_ += sizeof(Frame) + 2 * sizeof(*frame_index_.begin());
  }
  return found->second;
}

// `back` is where the called rule returns to. A call at the very end of a rule needs no frame of
// its own: then all ways through nested choices to one value are the same thread.
void GrammarMatcher::enter_rule(const Thread& thread, const Thread& back, Closure& closure) {
  const StateId start = grammar_.start(grammar_.state(thread.state).rule);
  const bool returns_at_once = grammar_.state(back.state).kind == Kind::kReturn;
  const int32_t depth = frames_[static_cast<size_t>(thread.frame)].depth;
  if (!returns_at_once && depth >= kMaxFrames) return;
  const int32_t frame = returns_at_once ? thread.frame : push_frame(back);
  if (can_finish(start, frame)) follow_later({start, 0, frame}, closure);
}

void GrammarMatcher::follow_later(const Thread& thread, Closure& closure) {
  if (closure.work_left <= 0) return;
  --closure.work_left;
  closure.open.push_back(thread);
}

// Follows `thread` without a byte: to threads that are followed later, or into the configuration if
// it waits for one.
void GrammarMatcher::expand(const Thread& thread, Closure& closure) {
  Config& config = closure.config;
  const GrammarState& state = grammar_.state(thread.state);
  switch (state.kind) {
    case Kind::kBytes:
      if (config.threads.size() < kMaxThreads) config.threads.push_back(thread);
      return;
    case Kind::kSplit: {
      // The first targets are followed first, and the last are left out.
      const auto most = static_cast<size_t>(closure.work_left);
      for (size_t i = std::min(state.targets.size(), most); i-- > 0;) {
        const StateId target = state.targets[i];
        if (can_finish(target, thread.frame)) {
          follow_later({target, 0, thread.frame}, closure);
        } else {
          --closure.work_left;
        }
      }
      return;
    }
    case Kind::kCall:
      enter_rule(thread, {state.next, 0, thread.frame}, closure);
      return;
    case Kind::kRepeat: {
      if (thread.count >= state.min) follow_later({state.next, 0, thread.frame}, closure);
      if (thread.count >= state.max) return;
      const int32_t count =
          state.max == kEndless ? std::min(thread.count + 1, state.min) : thread.count + 1;
      enter_rule(thread, {thread.state, count, thread.frame}, closure);
      return;
    }
    case Kind::kReturn:
      if (thread.frame == kNoFrame) {
        config.accepts = true;
      } else {
        follow_later(frames_[static_cast<size_t>(thread.frame)].back, closure);
      }
      return;
  }
}

// How many plain characters may follow `thread` whatever they are, if it is the only way.
int32_t GrammarMatcher::free_characters_after(Thread thread) const {
  while (grammar_.state(thread.state).kind == Kind::kReturn && thread.frame != kNoFrame) {
    thread = frames_[static_cast<size_t>(thread.frame)].back;
  }
  const GrammarState& state = grammar_.state(thread.state);
  if (state.kind != Kind::kRepeat || !state.takes_plain) return 0;
  return state.max == kEndless ? kEndless : state.max - thread.count;
}

GrammarMatcher::Config GrammarMatcher::close(std::vector<Thread> kernel) {
  Closure closure;
  if (kernel.size() == 1) {
    closure.config.num_free_characters = free_characters_after(kernel.front());
  }
  closure.work_left -= std::ssize(kernel);
  closure.open = std::move(kernel);
  MetThreads<Thread, ThreadHash> met;
  while (!closure.open.empty()) {
    const Thread thread = closure.open.back();
    closure.open.pop_back();
    if (met.insert(thread)) expand(thread, closure);
  }
  work_ += kMaxStepWork - closure.work_left;
  std::sort(closure.config.threads.begin(), closure.config.threads.end());
  return std::move(closure.config);
}

ConfigId GrammarMatcher::intern(Config config) {
  if (config.threads.empty() && !config.accepts) return kDeadConfig;
  size_t hash = config.accepts;
  for (const Thread& thread : config.threads) hash = mixed(hash, ThreadHash{}(thread));
  const auto [begin, end] = config_index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    const Config& known = configs_[static_cast<size_t>(it->second)];
    if (known.accepts == config.accepts && known.threads == config.threads &&
        known.num_free_characters == config.num_free_characters) {
      return it->second;
    }
  }
  const auto id = static_cast<ConfigId>(configs_.size());
  kept_bytes_ += sizeof(Config) + config.threads.size() * sizeof(Thread) +
                 num_classes_ * sizeof(ConfigId) + 4 * sizeof(size_t);
  config_index_.emplace(hash, id);
  configs_.push_back(std::move(config));
  transitions_.resize(transitions_.size() + num_classes_, kUnknown);
  return id;
}

void GrammarMatcher::count_edges(const Config& config) {
  int64_t num_edges = 0;
  for (const Thread& thread : config.threads)
    num_edges += std::ssize(grammar_.state(thread.state).edges);
  work_ += 1 + std::ssize(config.threads) + num_edges / kEdgesPerWork;
}

ConfigId GrammarMatcher::make_step(ConfigId config, uint8_t byte, uint8_t byte_class) {
  std::vector<Thread> kernel;
  const Config& from = configs_[static_cast<size_t>(config)];
  for (const Thread& thread : from.threads) {
    for (const ByteEdge& edge : grammar_.state(thread.state).edges) {
      if (byte < edge.first || byte > edge.last || kernel.size() == kMaxThreads) continue;
      if (can_finish(edge.target, thread.frame)) kernel.push_back({edge.target, 0, thread.frame});
    }
  }
  count_edges(from);
  const ConfigId next = kernel.empty() ? kDeadConfig : intern(close(std::move(kernel)));
  transitions_[static_cast<size_t>(config) * num_classes_ + byte_class] = next;
  return next;
}

std::bitset<256> GrammarMatcher::next_bytes(ConfigId config) {
  std::bitset<256> bytes;
  const Config& from = configs_[static_cast<size_t>(config)];
  for (const Thread& thread : from.threads) {
    for (const ByteEdge& edge : grammar_.state(thread.state).edges) {
      if (!can_finish(edge.target, thread.frame)) continue;
      for (size_t byte = edge.first; byte <= edge.last; ++byte) bytes.set(byte);
    }
  }
  count_edges(from);
  return bytes;
}

ConfigId GrammarMatcher::shrink(ConfigId config) {
  CHECK(config != kDeadConfig);
  Config kept = std::move(configs_[static_cast<size_t>(config)]);
  const std::vector<Frame> old_frames = std::exchange(frames_, std::vector<Frame>(1));
  frame_index_.clear();
  configs_.clear();
  config_index_.clear();
  transitions_.clear();
  kept_bytes_ = 0;
  // A frame's parent has a lower index, so a walk upwards meets parents first.
  std::vector<bool> needed(old_frames.size(), false);
  for (const Thread& thread : kept.threads) needed[static_cast<size_t>(thread.frame)] = true;
  for (size_t i = old_frames.size(); i-- > 1;) {
    if (needed[i]) needed[static_cast<size_t>(old_frames[i].back.frame)] = true;
  }
  std::vector<int32_t> new_index(old_frames.size(), kNoFrame);
  for (size_t i = 1; i < old_frames.size(); ++i) {
    if (!needed[i]) continue;
    Thread back = old_frames[i].back;
    back.frame = new_index[static_cast<size_t>(back.frame)];
    new_index[i] = push_frame(back);
  }
  for (Thread& thread : kept.threads) thread.frame = new_index[static_cast<size_t>(thread.frame)];
  std::sort(kept.threads.begin(), kept.threads.end());
  return intern(std::move(kept));
}

}  // namespace winnow
