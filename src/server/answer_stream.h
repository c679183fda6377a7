// AnswerStream: one choice of a request, from the engine's thread to the client's strand. Text and
// stop strings are decided on the engine's thread, because a stop must end the answer at once; all
// else happens later, where it delays nobody.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/generation_service.h"
#include "server/http_message.h"
#include "tokenizer/text_stream.h"

namespace winnow {

struct AnswerToken {
  ScoredToken token;
  std::string text;  // that became certain with it
  int64_t cached_tokens = 0;
  double prompt_s = 0;  // from the request to the first token
  double decode_s = 0;  // from the first token to this one
};

struct AnswerEnd {
  RequestEnd end;
  std::string text;          // that was held back
  std::string matched_stop;  // empty if none
};

// What happens to the choices of a request, on the client's strand.
class AnswerEvents {
 public:
  virtual ~AnswerEvents() = default;
  virtual void on_progress(int32_t choice, const PrefillProgress& progress) = 0;
  virtual void on_prompt_scores(int32_t choice, std::vector<ScoredToken> scores) = 0;
  virtual void on_token(int32_t choice, AnswerToken token) = 0;
  virtual void on_end(int32_t choice, AnswerEnd end) = 0;
};

struct AnswerStreamOptions {
  int32_t choice = 0;
  std::shared_ptr<const MarkSet> stops = {};  // null: none
  bool include_stop = false;
  bool report_progress = false;
  std::vector<TokenId> shown_control_tokens = {};
  // Called on the engine's thread with every ended request and the times between its tokens.
  std::function<void(const RequestEnd&)> on_ended = {};
  std::function<void(double)> on_gap = {};
};

class AnswerStream final : public GenerationListener {
 public:
  // `tokenizer` must outlive the stream.
  AnswerStream(const Tokenizer& tokenizer, AnswerStreamOptions options,
               std::shared_ptr<Exchange> exchange, std::shared_ptr<AnswerEvents> events);

  void on_prefill(const PrefillProgress& progress) override;
  void on_prompt_scores(std::span<const ScoredToken> tokens) override;
  bool on_token(const ScoredToken& token) override;
  void on_end(const RequestEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;

  AnswerStreamOptions options_;
  TextStream text_;
  std::shared_ptr<Exchange> exchange_;
  std::shared_ptr<AnswerEvents> events_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point progress_told_ = began_;
  Clock::time_point first_token_ = {};
  Clock::time_point last_token_ = {};
  int64_t cached_tokens_ = 0;
};

}  // namespace winnow
