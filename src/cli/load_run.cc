#include "cli/load_run.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/completion_call.h"

namespace winnow {
namespace {

class LoadRun {
 public:
  LoadRun(HttpCalls& calls, const LoadPlan& plan, BenchPrompts& prompts,
          const std::function<void(int64_t)>& on_request_end)
      : calls_(calls),
        plan_(plan),
        prompts_(prompts),
        on_request_end_(on_request_end),
        random_(plan.seed) {}

  LoadResult run() {
    if (plan_.rate) {
      wait_for_arrival();
    } else {
      for (int64_t i = 0; i < plan_.concurrency; ++i) send_next();
    }
    LoadResult result;
    result.interrupted = !calls_.run([this] { stopped_ = true; });
    for (const auto& call : sent_) result.records.push_back(call->record());
    return result;
  }

 private:
  bool may_send() const {
    const bool enough = plan_.num_requests && std::ssize(sent_) >= *plan_.num_requests;
    const bool late = plan_.seconds && clock_.seconds() >= *plan_.seconds;
    return !stopped_ && !enough && !late;
  }

  // Arrivals keep to their own clock: a late one does not delay those after it.
  void wait_for_arrival() {
    arrival_s_ += -std::log1p(-random_.next_unit()) / *plan_.rate;
    if (!may_send() || (plan_.seconds && arrival_s_ >= *plan_.seconds)) return;
    calls_.after(std::max(0.0, arrival_s_ - clock_.seconds()), [this] {
      send_next();
      wait_for_arrival();
    });
  }

  void send_next() {
    if (!may_send()) return;
    const int64_t length = plan_.lengths.draw(random_);
    const std::string body = completion_body(plan_.model, prompts_.next(length), plan_.max_tokens);
    const size_t idx = sent_.size();
    sent_.push_back(
        std::make_shared<CompletionCall>(length, clock_, [this, idx] { on_news(*sent_[idx]); }));
    calls_.start({.path = "/v1/completions", .body = body}, sent_.back());
  }

  void on_news(const CompletionCall& call) {
    if (!call.ended()) return;
    failures_in_row_ = call.record().failure ? failures_in_row_ + 1 : 0;
    // Failures come fast: the next would follow at once, and so on.
    if (!plan_.rate && failures_in_row_ >= kMaxFailuresInRow) stopped_ = true;
    on_request_end_(++num_ended_);
    if (!plan_.rate) send_next();
  }

  HttpCalls& calls_;
  const LoadPlan& plan_;
  BenchPrompts& prompts_;
  const std::function<void(int64_t)>& on_request_end_;
  RandomStream random_;
  const Stopwatch clock_;
  std::vector<std::shared_ptr<CompletionCall>> sent_;
  double arrival_s_ = 0;
  int64_t num_ended_ = 0;
  int64_t failures_in_row_ = 0;
  bool stopped_ = false;
};

}  // namespace

LoadResult run_load(HttpCalls& calls, const LoadPlan& plan, BenchPrompts& prompts,
                    const std::function<void(int64_t)>& on_request_end) {
  return LoadRun(calls, plan, prompts, on_request_end).run();
}

}  // namespace winnow
