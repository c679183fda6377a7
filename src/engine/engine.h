// Engine: runs a model. Owns the KV cache, the threads and the scratch memory; speaks token ids
// only.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention_stats.h"
#include "attention/sparse_attention.h"
#include "attention/sparse_profile.h"
#include "attention/sparse_rule.h"
#include "base/function_ref.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine_options.h"
#include "model/model.h"
#include "sampling/sampler.h"

namespace winnow {

// Which cached tokens serve a prompt that begins with them (law 4).
enum class PrefixReuse {
  kAll,    // also those of earlier answers, whose K and V come from the arithmetic of generated
           // tokens
  kExact,  // only those run as prompt tokens: the answer equals that of a fresh run bit for bit
};

enum class FinishReason { kEndToken, kMaxTokens, kContextFull, kStopped, kCancelled };

// Told after every chunk of the prompt, on the caller's thread.
struct PrefillProgress {
  int64_t done = 0;    // prompt tokens in the cache, reused ones included
  int64_t reused = 0;  // found in the cache at the start
  int64_t total = 0;
  double elapsed_s = 0;
  double eta_s = 0;  // from a cost model that grows with position
  AttentionStats attention = {};
};

struct GenerateOptions {
  int64_t max_new_tokens = -1;  // -1 = until an end token or the context is full
  SamplerOptions sampling = {};
  std::vector<TokenId> end_tokens = {};
  PrefixReuse reuse = PrefixReuse::kAll;
  // How the rows of long prompts and their answers attend; none = densely.
  std::optional<SparseRule> sparse = {};
  SelectionObserver* observer = nullptr;  // told of every sparse tile
  std::function<void(const PrefillProgress&)> on_prefill = {};
  // Called with the logits that each token is drawn from; valid during the call only.
  std::function<void(std::span<const float>)> on_logits = {};
  // Called with every new token (end tokens excluded); false stops the answer (kStopped).
  std::function<bool(TokenId)> on_token = {};
  // Looked at after every chunk and token, and among the logits of a chunk.
  const std::atomic<bool>* cancel = nullptr;
};

struct Generation {
  std::vector<TokenId> tokens;  // without the end token
  FinishReason finish = FinishReason::kEndToken;
  int64_t prompt_tokens = 0;
  int64_t reused_tokens = 0;
  double prompt_ms = 0;             // prefill of the tokens not reused; no profile
  std::optional<double> ttft_ms;    // from the call to the first sampled token; none without one
  double predicted_ms = 0;          // decode steps after the first token
  AttentionStats attention;         // of the prompt tokens not reused
  AttentionStats answer_attention;  // of the generated tokens
};

// Next-token log-probabilities at the last n positions of a given text.
struct ScoredText {
  std::vector<float> target_logprob;  // [n - 1]: log p(next token | all before it)
  std::vector<TokenId> top1;          // [n]: most likely token after each position
  AttentionStats attention;
};

// Logits of one position of a text under two ways of attending: [vocab_size] each.
struct LogitPair {
  int64_t position = 0;
  std::span<const float> reference;
  std::span<const float> other;
};

// What the prompt attention of two runs of a text computed.
struct ComparedAttention {
  AttentionStats reference;
  AttentionStats other;
};

// The same of two answers; `ms` is the time of their steps.
struct ComparedAnswers {
  struct Side {
    AttentionStats attention;
    double ms = 0;
  };
  Side reference;
  Side other;
};

// One conversation's tokens and pages. Obtained from an Engine and usable with it alone.
class Sequence;

class Engine {
 public:
  // kOutOfMemory naming what is needed and what is free; kInvalidArgument for an option out of
  // range.
  static Result<std::unique_ptr<Engine>> create(std::shared_ptr<const Model> model,
                                                const EngineOptions& options);
  ~Engine();

  const Model& model() const;
  int64_t context_tokens() const;
  int num_threads() const;
  int64_t chunk_tokens() const;  // whole pages, fewer than asked for where they take much memory
  int64_t free_tokens() const;   // of which another sequence could hold K and V now
  int64_t kv_bytes() const;      // of the pages in use at most so far

  // Answers `prompt`. Tokens shared with what `sequence` already holds are reused; afterwards it
  // holds the prompt and the answer. kContextExceeded if the prompt does not fit. A cancelled call
  // returns what it has (kCancelled).
  Result<Generation> generate(Sequence& sequence, std::span<const TokenId> prompt,
                              const GenerateOptions& options);
  std::unique_ptr<Sequence> new_sequence();

  // Scores the last `num_last` positions of a text (all if it has fewer) with prompt arithmetic;
  // `on_prefill` and `cancel` as above. kInterrupted when cancelled. Requires num_last >= 1.
  Result<ScoredText> score(std::span<const TokenId> ids, int64_t num_last,
                           const GenerateOptions& options);
  // The same on `sequence`, which is emptied first and holds the text afterwards.
  Result<ScoredText> score(Sequence& sequence, std::span<const TokenId> ids, int64_t num_last,
                           const GenerateOptions& options);

  // Runs a text as a dense prompt and measures the second moments of its keys and queries.
  // `on_prefill` and `cancel` as above; kInterrupted when cancelled.
  Result<SparseProfile> profile(std::span<const TokenId> ids, const GenerateOptions& options);
  // Asked for this model's profile once, before the next prompt that has rows for it; an error is
  // that prompt's. Until then prompts do without a profile. Sequences keep what they have read with
  // an earlier one.
  using ProfileSource = std::function<Result<SparseProfile>(Engine&)>;
  void set_profile_source(ProfileSource source);

  // Runs a text as a prompt twice, side by side, and hands over the logits of positions [begin,
  // end), each once, from any thread. Needs room for both. kInterrupted when cancelled. Requires
  // 0 <= begin <= end <= ids.size().
  Result<ComparedAttention> compare(std::span<const TokenId> ids, int64_t begin, int64_t end,
                                    const GenerateOptions& reference, const GenerateOptions& other,
                                    FunctionRef<void(const LogitPair&)> on_pair);
  // Runs the first `begin` tokens of a text as a prompt, a whole number of pages, and the others
  // one by one as an answer, twice, token by token in turn. The prompt attends as `reference` says
  // in both. Hands over the logits of positions [begin, ids.size()). Requires 0 < begin <
  // ids.size(); otherwise as compare().
  Result<ComparedAnswers> compare_answers(std::span<const TokenId> ids, int64_t begin,
                                          const GenerateOptions& reference,
                                          const GenerateOptions& other,
                                          FunctionRef<void(const LogitPair&)> on_pair);

 private:
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
