// StreamWriter: what all streamed answers do alike: head, pings, prompt progress, errors and end.
#pragma once

#include "server/answer_run.h"
#include "server/generation_settings.h"
#include "server/openai_types.h"

namespace winnow {

// Adds up the usage of a request's choices. A prompt that several choices share counts once.
class UsageTotal {
 public:
  explicit UsageTotal(int32_t choices_per_prompt) : choices_per_prompt_(choices_per_prompt) {}
  void add_prompt(int64_t tokens) { usage_.prompt_tokens += tokens; }
  void add_token() { ++usage_.completion_tokens; }
  void add_end(int32_t choice, const RequestEnd& end);
  const UsageCounts& so_far() const { return usage_; }
  const UsageCounts& ended() const { return ended_; }

 private:
  int32_t choices_per_prompt_;
  UsageCounts usage_;  // tokens as they come; cached ones of prompts that have ended
  UsageCounts ended_;
};

class StreamWriter : public AnswerWriter {
 public:
  // `object` is the name of the chunks' type. `tokenizer` must outlive the writer.
  StreamWriter(AnswerHead head, std::string_view object, const GenerationSettings& settings,
               const Tokenizer& tokenizer)
      : head_(std::move(head)),
        object_(object),
        settings_(settings),
        tokenizer_(tokenizer),
        usage_(settings.n) {}

  void begin(Exchange& exchange) override;
  void on_progress(Exchange& exchange, int32_t choice, const PrefillProgress& progress) override;
  void finish(Exchange& exchange) override;
  void fail(Exchange& exchange, const Error& error) override;

 protected:
  boost::json::object chunk(boost::json::array choices) const;
  // With usage where it is wanted on every chunk.
  void send(Exchange& exchange, boost::json::object chunk);
  // The last chunk of a choice, which says how it ended.
  void send_end(Exchange& exchange, boost::json::object choice, const AnswerEnd& end,
                std::string_view finish_reason);

  const AnswerHead head_;
  const std::string object_;
  const GenerationSettings settings_;
  const Tokenizer& tokenizer_;
  UsageTotal usage_;
};

}  // namespace winnow
