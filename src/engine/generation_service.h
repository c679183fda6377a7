// GenerationService: many requests on one engine. Requests go in as token ids; tokens come back to
// each request's listener as they are made. What a server needs to know of an engine is here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/attention_stats.h"
#include "attention/sparse_rule.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/request_id.h"
#include "engine/token_scores.h"
#include "sampling/sampler.h"
#include "store/prefix_folder.h"

namespace winnow {

// Which tokens may come next: a grammar. Called by one thread after the other, beside those of
// other requests.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;
  // Sets the logits of tokens that may not come next to -inf; leaves at least one finite.
  virtual void mask(std::span<float> logits) = 0;
  // `token` came, and the answer goes on. Requires that the mask allowed it.
  virtual void accept(TokenId token) = 0;
};

struct ServiceRequest {
  std::vector<TokenId> prompt = {};
  int64_t max_new_tokens = -1;  // -1 = until an end token or the context is full
  int64_t min_new_tokens = 0;   // end tokens are not chosen before
  SamplerOptions sampling = {};
  std::vector<TokenId> end_tokens = {};
  std::optional<SparseRule> sparse = {};  // none = dense
  PrefixReuse reuse = PrefixReuse::kExact;
  std::string cache_scope = {};         // prefixes are shared within a scope only (a tenant)
  bool read_cache = true;               // false: nothing is taken from the cache, all is computed
  bool score_tokens = false;            // fill ScoredToken::logprob
  int32_t num_top_logprobs = 0;         // and so many of ScoredToken::top
  bool score_prompt = false;            // on_prompt_scores; computes the whole prompt
  int32_t num_prompt_top_logprobs = 0;  // of ScoredToken::top there
  std::unique_ptr<TokenConstraint> constraint = {};
  SelectionObserver* observer = nullptr;  // told of every sparse tile; outlives the request
  // Only the prompt is run, and its full pages are kept in the service's folder; then it ends.
  std::optional<PrefixName> save_as = {};
};

// Times count from submit().
struct RequestEnd {
  FinishReason finish = FinishReason::kEndToken;
  std::optional<Error> error = {};  // then `finish` means nothing
  TokenId end_token = -1;           // of kEndToken
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;     // of the prompt, found in the cache
  int64_t generated_tokens = 0;  // given to on_token, and an end token
  int32_t num_preemptions = 0;
  double queue_s = 0;                    // until its first step
  double prompt_s = 0;                   // from its first step to its first token
  double decode_s = 0;                   // from its first token to its last
  AttentionStats attention = {};         // of the prompt tokens that were run
  AttentionStats answer_attention = {};  // of the generated tokens
  std::optional<PrefixInfo> saved = {};
};

// One request's news. Called on the engine's thread, in order; must return within microseconds.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // After every chunk of the prompt.
  virtual void on_prefill(const PrefillProgress& /*progress*/) {}
  // With score_prompt, before the first token, maybe in parts: prompt tokens in order, the first
  // without logprob and top.
  virtual void on_prompt_scores(std::span<const ScoredToken> /*tokens*/) {}
  // A new token, end tokens excluded; false ends the answer (kStopped).
  virtual bool on_token(const ScoredToken& token) = 0;
  // Exactly once, last.
  virtual void on_end(const RequestEnd& end) = 0;
};

enum class RequestPhase { kWaiting, kPrompt, kDecode };

struct RequestStatus {
  RequestId id = {};
  RequestPhase phase = RequestPhase::kWaiting;
  int64_t prompt_tokens = 0;
  int64_t processed_tokens = 0;  // of the prompt, cached ones included
  int64_t cached_tokens = 0;
  int64_t generated_tokens = 0;
  double age_s = 0;
  double tokens_per_s = 0;  // of the current phase
  double eta_s = 0;         // of the prompt
};

// live + cached + free = total, always.
struct PageCounts {
  int64_t total = 0;
  int64_t live = 0;    // held by requests
  int64_t cached = 0;  // held by the prefix cache alone: given up when pages are needed
  int64_t free = 0;
};

struct ServiceStatus {
  PageCounts pages;
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t max_running = 0;
  int64_t max_waiting = 0;
  // Since the start.
  int64_t num_steps = 0;
  int64_t num_preemptions = 0;
  int64_t prefix_queried_tokens = 0;
  int64_t prefix_hit_tokens = 0;
  int64_t prefix_loaded_tokens = 0;  // brought to the cache from saved prefixes
  std::vector<RequestStatus> requests;
  // Since the last step ended, or work came to an idle engine; 0 when idle.
  double seconds_in_step = 0;
  bool failed = false;  // the engine's thread has ended
};

// What one step did, for metrics. Told on the engine's thread.
struct StepReport {
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;
  double seconds = 0;
  AttentionStats attention = {};  // of its prompt tokens
};

// All calls are thread-safe. All return at once but submit(), which reads the prompt.
class GenerationService {
 public:
  virtual ~GenerationService() = default;

  virtual const Model& model() const = 0;
  // Prompt and answer together; at most what the pages hold.
  virtual int64_t context_tokens() const = 0;

  // `listener` is called until on_end. Nothing is called after an error:
  // kInvalidArgument for ids, sampling options or a name out of range, kContextExceeded for a
  // prompt that leaves no room for a token, kUnsupported for a save without a folder, kOverloaded
  // when the queue is full, kShuttingDown.
  virtual Result<RequestId> submit(ServiceRequest request,
                                   std::shared_ptr<GenerationListener> listener) = 0;
  // Ends the request (kCancelled) within a step; none of that id: nothing happens.
  virtual void cancel(RequestId id) = 0;
  virtual ServiceStatus status() const = 0;
  // Takes no more requests; those at hand are finished.
  virtual void drain() = 0;
};

}  // namespace winnow
