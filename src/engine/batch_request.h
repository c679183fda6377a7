// BatchRequest: what a request that runs beside others is besides its tokens and pages, which the
// scheduler owns.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "attention/sequence_summaries.h"
#include "base/stopwatch.h"
#include "engine/generation_service.h"
#include "engine/sequence.h"
#include "sampling/sampler.h"

namespace winnow {

struct BatchRequest {
  // The prompt is not read from `request`: the scheduler has it.
  BatchRequest(RequestId id_in, ServiceRequest request_in,
               std::shared_ptr<GenerationListener> listener_in, int64_t room, int num_layers)
      : id(id_in),
        request(std::move(request_in)),
        listener(std::move(listener_in)),
        mode(PromptMode::of(request.sparse, std::ssize(request.prompt))),
        prompt_tokens(std::ssize(request.prompt)),
        most_new_tokens(request.max_new_tokens < 0 ? room : std::min(room, request.max_new_tokens)),
        clipped(request.max_new_tokens < 0 || request.max_new_tokens > room),
        sampler(request.sampling, request.prompt),
        summaries(num_layers) {}

  RequestId id;
  ServiceRequest request;
  std::shared_ptr<GenerationListener> listener;
  PromptMode mode;
  int64_t prompt_tokens;
  int64_t most_new_tokens;  // 0 = only the prompt is run
  bool clipped;             // the context ends the answer before max_new_tokens does
  Sampler sampler;
  SequenceSummaries summaries;
  std::vector<TokenId> saved_prompt;   // of a request that saves it
  AttentionStats attention;            // of the prompt
  AttentionStats answer_attention;     // of generated tokens
  std::vector<float> adjusted_logits;  // scratch: where some tokens may not come next

  int64_t generated_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t processed_tokens = 0;  // of the prompt
  int64_t scored_tokens = 0;     // prompt tokens whose scores are told; the first has none
  int32_t num_preemptions = 0;

  Stopwatch since_submit;
  std::optional<double> first_step_s;  // since submit
  std::optional<double> first_token_s;
  double last_token_s = 0;
};

}  // namespace winnow
