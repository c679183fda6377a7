#include "server/answer_run.h"

#include <algorithm>
#include <utility>

#include "server/error_map.h"

namespace winnow {
namespace {

class AnswerRun final : public AnswerEvents, public std::enable_shared_from_this<AnswerRun> {
 public:
  AnswerRun(GenerationService& service, std::shared_ptr<Exchange> exchange,
            std::unique_ptr<AnswerWriter> writer)
      : service_(service), exchange_(std::move(exchange)), writer_(std::move(writer)) {}

  // On the strand: the choices are running. What has happened meanwhile is told now.
  void begin(std::vector<RequestId> ids) {
    num_running_ = ids.size();
    ids_ = std::move(ids);
    begun_ = true;
    exchange_->on_client_left([run = weak_from_this()] {
      if (const auto self = run.lock()) self->cancel();
    });
    if (!over()) writer_->begin(*exchange_);
    for (const std::function<void()>& event : std::exchange(early_, {})) event();
  }
  // On the strand, instead: not all choices have been accepted.
  void refuse(const Error& error) {
    begun_ = failed_ = true;
    early_.clear();
    exchange_->reply(error_reply(error));
  }

  void on_progress(int32_t choice, const PrefillProgress& progress) override {
    tell([this, choice, progress] { writer_->on_progress(*exchange_, choice, progress); });
  }
  void on_prompt_scores(int32_t choice, std::vector<ScoredToken> scores) override {
    tell([this, choice, scores = std::move(scores)]() mutable {
      writer_->on_prompt_scores(*exchange_, choice, std::move(scores));
    });
  }
  void on_token(int32_t choice, AnswerToken token) override {
    tell([this, choice, token = std::move(token)]() mutable {
      writer_->on_token(*exchange_, choice, std::move(token));
    });
  }
  void on_end(int32_t choice, AnswerEnd end) override {
    tell([this, choice, end = std::move(end)]() mutable { take_end(choice, std::move(end)); });
  }

 private:
  bool over() const { return failed_ || exchange_->client_left(); }

  // Choices may have news before all have been submitted.
  template <class Event>
  void tell(Event event) {
    if (!begun_) {
      early_.push_back([this, event = std::move(event)]() mutable {
        if (!over()) event();
      });
    } else if (!over()) {
      event();
    }
  }

  void take_end(int32_t choice, AnswerEnd end) {
    --num_running_;
    add_details(end.end);
    if (end.end.error) return fail_all(*end.end.error);
    if (end.end.finish == FinishReason::kCancelled) {
      return fail_all(fail(ErrorCode::kInterrupted, "the request was cancelled by the server"));
    }
    writer_->on_end(*exchange_, choice, std::move(end));
    if (num_running_ == 0) writer_->finish(*exchange_);
  }

  void cancel() {
    for (const RequestId id : ids_) service_.cancel(id);
  }

  void fail_all(const Error& error) {
    writer_->fail(*exchange_, error);
    failed_ = true;
    cancel();
  }

  // Of several choices, what is added up or lasted longest.
  void add_details(const RequestEnd& end) {
    boost::json::object& details = exchange_->details();
    const auto add = [&details](const char* name, int64_t count) {
      boost::json::value& sum = details[name];
      sum = (sum.is_int64() ? sum.get_int64() : 0) + count;
    };
    const auto longest = [&details](const char* name, double seconds) {
      boost::json::value& most = details[name];
      most = std::max(most.is_double() ? most.get_double() : 0, seconds * 1e3);
    };
    add("prompt_tokens", end.prompt_tokens);
    add("cached_tokens", end.cached_tokens);
    add("generated_tokens", end.generated_tokens);
    longest("queue_ms", end.queue_s);
    longest("prompt_ms", end.prompt_s);
    longest("decode_ms", end.decode_s);
  }

  GenerationService& service_;
  std::shared_ptr<Exchange> exchange_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<RequestId> ids_;
  size_t num_running_ = 0;
  bool begun_ = false;
  std::vector<std::function<void()>> early_;  // before begin()
  bool failed_ = false;
};

}  // namespace

void run_answer(GenerationService& service, const Tokenizer& tokenizer, Metrics& metrics,
                std::vector<ServiceRequest> requests, const AnswerRunOptions& options,
                std::shared_ptr<Exchange> exchange, std::unique_ptr<AnswerWriter> writer) {
  const auto run = std::make_shared<AnswerRun>(service, exchange, std::move(writer));
  std::vector<RequestId> accepted;
  const auto cancel_all = [&] {
    for (const RequestId id : accepted) service.cancel(id);
  };
  for (ServiceRequest& request : requests) {
    const auto choice = static_cast<int32_t>(accepted.size());
    AnswerStreamOptions stream_options{
        .choice = choice,
        .stops = options.stops,
        .include_stop = options.include_stop,
        .report_progress = options.report_progress,
        .shown_control_tokens = options.shown_control_tokens,
        .on_ended =
            [&metrics, choice, also = options.on_ended](const RequestEnd& end) {
              metrics.on_end(end);
              if (also) also(choice, end);
            },
        .on_gap = [&metrics](double seconds) { metrics.on_gap(seconds); }};
    const auto stream =
        std::make_shared<AnswerStream>(tokenizer, std::move(stream_options), exchange, run);
    const Result<RequestId> id = service.submit(std::move(request), stream);
    if (!id.ok()) {
      cancel_all();
      exchange->post([run, error = id.error()] { run->refuse(error); });
      return;
    }
    accepted.push_back(*id);
  }
  exchange->post([run, accepted] { run->begin(accepted); });
  // Then nobody may have been left to run that.
  if (exchange->gone()) cancel_all();
}

}  // namespace winnow
