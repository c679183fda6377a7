// CompletionCall: one streamed completion under way, timed on the clock of its run.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "base/stopwatch.h"
#include "cli/http_calls.h"
#include "cli/streamed_completion.h"

namespace winnow {

class CompletionCall final : public HttpCallListener {
 public:
  // Sent now. `on_news` follows each arrival and the end; `clock` outlives this.
  CompletionCall(int64_t asked_prompt_tokens, const Stopwatch& clock, std::function<void()> on_news)
      : clock_(clock),
        answer_(asked_prompt_tokens, clock.seconds()),
        on_news_(std::move(on_news)) {}

  void on_head(int status) override { answer_.on_head(status); }
  void on_body(std::string_view bytes) override {
    answer_.on_body(bytes, clock_.seconds());
    on_news_();
  }
  void on_end(const std::optional<RequestFailure>& failure) override {
    answer_.on_end(failure, clock_.seconds());
    on_news_();
  }

  const RequestRecord& record() const { return answer_.record(); }
  bool ended() const { return record().ended_s.has_value(); }
  int64_t num_chunks() const { return answer_.num_chunks(); }

 private:
  const Stopwatch& clock_;
  StreamedCompletion answer_;
  const std::function<void()> on_news_;
};

}  // namespace winnow
