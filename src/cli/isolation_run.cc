#include "cli/isolation_run.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "cli/completion_call.h"

namespace winnow {
namespace {

using CallPointer = std::shared_ptr<CompletionCall>;

// The streams and the long prompt beside them.
class BesideRun {
 public:
  BesideRun(HttpCalls& calls, const IsolationPlan& plan, BenchPrompts& prompts,
            const Stopwatch& clock, const std::function<void(std::string_view)>& on_phase)
      : calls_(calls), plan_(plan), prompts_(prompts), clock_(clock), on_phase_(on_phase) {}

  void run(IsolationResult& result) {
    on_phase_("starting the streams");
    RandomStream random(plan_.seed);
    for (int64_t i = 0; i < plan_.num_streams; ++i) {
      streams_.push_back(send(plan_.stream_lengths.draw(random), plan_.stream_max_tokens));
    }
    result.interrupted = !calls_.run([this] { over_ = true; });
    for (const CallPointer& stream : streams_) result.streams.push_back(stream->record());
    result.steady_s = steady_s_;
    if (long_call_) result.beside = long_call_->record();
  }

 private:
  enum class Phase { kStarting, kBefore, kDuring, kAfter };

  CallPointer send(int64_t prompt_tokens, int64_t max_tokens) {
    const std::string body = completion_body(plan_.model, prompts_.next(prompt_tokens), max_tokens);
    auto call = std::make_shared<CompletionCall>(prompt_tokens, clock_, [this] { on_news(); });
    calls_.start({.path = "/v1/completions", .body = body}, call);
    return call;
  }

  void on_news() {
    if (over_) return;
    const bool lost = phase_ != Phase::kDuring && phase_ != Phase::kAfter && any_stream_ended();
    if (lost) return finish();
    if (phase_ == Phase::kStarting && have_tokens(1)) {
      steady_s_ = clock_.seconds();
      enter(Phase::kBefore, "measuring the streams alone");
    } else if (phase_ == Phase::kBefore && have_tokens(kTokensBefore)) {
      enter(Phase::kDuring, "sending the long prompt");
      long_call_ = send(plan_.long_prompt_tokens, 1);
    } else if (phase_ == Phase::kDuring && long_call_->num_chunks() > 0) {
      enter(Phase::kAfter, {});
    } else if (phase_ == Phase::kDuring && long_call_->ended()) {
      return finish();
    }
    // A gap that began beside the long prompt has its end, too.
    if (phase_ == Phase::kAfter && long_call_->ended() && have_tokens(1)) finish();
  }

  void enter(Phase phase, std::string_view what) {
    phase_ = phase;
    if (!what.empty()) on_phase_(what);
    counts_.clear();
    for (const CallPointer& stream : streams_) counts_.push_back(stream->num_chunks());
  }

  // Whether each stream has had so many tokens in this phase, or has ended.
  bool have_tokens(int64_t count) const {
    for (size_t i = 0; i < streams_.size(); ++i) {
      const int64_t before = counts_.empty() ? 0 : counts_[i];
      if (!streams_[i]->ended() && streams_[i]->num_chunks() - before < count) return false;
    }
    return std::ssize(streams_) == plan_.num_streams;
  }

  bool any_stream_ended() const {
    return std::any_of(streams_.begin(), streams_.end(),
                       [](const CallPointer& stream) { return stream->ended(); });
  }

  void finish() {
    over_ = true;
    calls_.cancel_all();
  }

  HttpCalls& calls_;
  const IsolationPlan& plan_;
  BenchPrompts& prompts_;
  const Stopwatch& clock_;
  const std::function<void(std::string_view)>& on_phase_;
  Phase phase_ = Phase::kStarting;
  std::vector<CallPointer> streams_;
  std::vector<int64_t> counts_;  // of the streams' tokens when the phase began
  CallPointer long_call_;
  double steady_s_ = std::numeric_limits<double>::infinity();
  bool over_ = false;
};

// Gaps that begin at or after `from` and before `end`, and end after `begin` and at or before `to`.
struct GapWindow {
  double from;
  double end;
  double begin;
  double to;
};

std::vector<double> gaps_in(const std::vector<RequestRecord>& streams, const GapWindow& window) {
  std::vector<double> gaps;
  for (const RequestRecord& stream : streams) {
    for (size_t i = 1; i < stream.chunk_s.size(); ++i) {
      const double before = stream.chunk_s[i - 1];
      const double after = stream.chunk_s[i];
      if (before < window.from || before >= window.end) continue;
      if (after <= window.begin || after > window.to) continue;
      gaps.push_back((after - before) * 1e3);
    }
  }
  return gaps;
}

}  // namespace

std::vector<double> IsolationResult::gaps_before_ms() const {
  constexpr double kAlways = std::numeric_limits<double>::infinity();
  const double sent = beside ? beside->sent_s : kAlways;
  return gaps_in(streams, {.from = steady_s, .end = kAlways, .begin = steady_s, .to = sent});
}

std::vector<double> IsolationResult::gaps_during_ms() const {
  constexpr double kAlways = std::numeric_limits<double>::infinity();
  if (!beside) return {};
  const double end =
      beside->chunk_s.empty() ? beside->ended_s.value_or(kAlways) : beside->chunk_s.front();
  return gaps_in(streams, {.from = steady_s, .end = end, .begin = beside->sent_s, .to = kAlways});
}

int64_t IsolationResult::num_ended_early() const {
  if (!beside || beside->chunk_s.empty()) return 0;
  return std::count_if(streams.begin(), streams.end(), [this](const RequestRecord& stream) {
    return stream.ended_s && *stream.ended_s < beside->chunk_s.front();
  });
}

std::optional<RequestFailure> IsolationResult::failure() const {
  for (const auto* record : {&beside, &alone}) {
    if (*record && (*record)->failure) return (*record)->failure;
  }
  if (beside || interrupted) return std::nullopt;
  for (const RequestRecord& stream : streams) {
    if (stream.failure && stream.failure->kind != "cancelled") return stream.failure;
  }
  return RequestFailure{"ended", "expected streams of at least " + std::to_string(kTokensBefore) +
                                     " tokens more, found one that ended"};
}

IsolationResult run_isolation(HttpCalls& calls, const IsolationPlan& plan, BenchPrompts& prompts,
                              const std::function<void(std::string_view)>& on_phase) {
  const Stopwatch clock;
  IsolationResult result;
  BesideRun(calls, plan, prompts, clock, on_phase).run(result);
  if (result.interrupted || !result.beside || !result.beside->completed()) return result;
  on_phase("sending another long prompt alone");
  const auto alone = std::make_shared<CompletionCall>(plan.long_prompt_tokens, clock, [] {});
  calls.start({.path = "/v1/completions",
               .body = completion_body(plan.model, prompts.next(plan.long_prompt_tokens), 1)},
              alone);
  result.interrupted = !calls.run();
  result.alone = alone->record();
  return result;
}

}  // namespace winnow
