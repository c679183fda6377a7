#include "server/answer_stream.h"

namespace winnow {
namespace {

constexpr std::chrono::milliseconds kProgressInterval(250);

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

AnswerStream::AnswerStream(const Tokenizer& tokenizer, AnswerStreamOptions options,
                           std::shared_ptr<Exchange> exchange, std::shared_ptr<AnswerEvents> events)
    : options_(std::move(options)),
      text_(tokenizer, options_.stops, options_.shown_control_tokens),
      exchange_(std::move(exchange)),
      events_(std::move(events)) {}

void AnswerStream::on_prefill(const PrefillProgress& progress) {
  cached_tokens_ = progress.reused;
  if (!options_.report_progress) return;
  const Clock::time_point now = Clock::now();
  const bool first = progress_told_ == began_;
  if (!first && now - progress_told_ < kProgressInterval) return;
  progress_told_ = now;
  exchange_->post([events = events_, choice = options_.choice, progress] {
    events->on_progress(choice, progress);
  });
}

void AnswerStream::on_prompt_scores(std::span<const ScoredToken> tokens) {
  exchange_->post([events = events_, choice = options_.choice,
                   scores = std::vector<ScoredToken>(tokens.begin(), tokens.end())]() mutable {
    events->on_prompt_scores(choice, std::move(scores));
  });
}

bool AnswerStream::on_token(const ScoredToken& token) {
  const Clock::time_point now = Clock::now();
  if (first_token_ == Clock::time_point{}) {
    first_token_ = now;
  } else if (options_.on_gap) {
    options_.on_gap(seconds_between(last_token_, now));
  }
  last_token_ = now;
  AnswerToken news;
  news.token = token;
  news.text = text_.push(token.token);
  if (text_.stopped() && options_.include_stop) news.text += text_.matched_stop();
  news.cached_tokens = cached_tokens_;
  news.prompt_s = seconds_between(began_, first_token_);
  news.decode_s = seconds_between(first_token_, now);
  exchange_->post([events = events_, choice = options_.choice, news = std::move(news)]() mutable {
    events->on_token(choice, std::move(news));
  });
  return !text_.stopped();
}

void AnswerStream::on_end(const RequestEnd& end) {
  if (options_.on_ended) options_.on_ended(end);
  AnswerEnd news;
  news.end = end;
  const bool stopped_before = text_.stopped();
  news.text = text_.finish();
  news.matched_stop = text_.matched_stop();
  if (!stopped_before && text_.stopped() && options_.include_stop) {
    news.text += news.matched_stop;
  }
  exchange_->post([events = events_, choice = options_.choice, news = std::move(news)]() mutable {
    events->on_end(choice, std::move(news));
  });
}

}  // namespace winnow
