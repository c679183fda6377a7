// AnswerRun: one generating request from its submission to its end: the requests to the engine for
// its choices, what becomes of them, and their cancellation when the client leaves.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/generation_service.h"
#include "server/answer_stream.h"
#include "server/http_message.h"
#include "server/metrics.h"

namespace winnow {

// Says what happens in the form of one endpoint. Called on the client's strand.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;
  // All choices have been accepted.
  virtual void begin(Exchange& /*exchange*/) {}
  virtual void on_progress(Exchange& /*exchange*/, int32_t /*choice*/,
                           const PrefillProgress& /*progress*/) {}
  virtual void on_prompt_scores(Exchange& /*exchange*/, int32_t /*choice*/,
                                std::vector<ScoredToken> /*scores*/) {}
  virtual void on_token(Exchange& exchange, int32_t choice, AnswerToken token) = 0;
  virtual void on_end(Exchange& exchange, int32_t choice, AnswerEnd end) = 0;
  // After the last choice's end.
  virtual void finish(Exchange& exchange) = 0;
  // Instead, if a choice ended with an error; nothing follows.
  virtual void fail(Exchange& exchange, const Error& error) = 0;
};

struct AnswerRunOptions {
  std::shared_ptr<const MarkSet> stops = {};  // null: none
  bool include_stop = false;
  bool report_progress = false;
  std::vector<TokenId> shown_control_tokens = {};
  // Called on the engine's thread when a choice ends; what it holds lives until then.
  std::function<void(int32_t choice, const RequestEnd& end)> on_ended = {};
};

// Submits `requests`, one per choice, all or none, and lets `writer` answer. Costs the length of
// the prompts: not for an I/O thread.
void run_answer(GenerationService& service, const Tokenizer& tokenizer, Metrics& metrics,
                std::vector<ServiceRequest> requests, const AnswerRunOptions& options,
                std::shared_ptr<Exchange> exchange, std::unique_ptr<AnswerWriter> writer);

}  // namespace winnow
