// Decoder: the forward pass. One call runs one step: prompt chunks and generated tokens of any
// number of sequences.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "attention/profile_collector.h"
#include "attention/sequence_summaries.h"
#include "attention/sparse_attention.h"
#include "base/function_ref.h"
#include "base/ids.h"
#include "base/thread_pool.h"
#include "kernels/table.h"
#include "kv/kv_store.h"
#include "model/model.h"

namespace winnow {

// How a sequence attends sparsely, in the layers that the rule applies to: the rows of its prompt
// at [rule.dense_tokens, end), or a generated token.
struct SparseSequence {
  const SparseRule* rule = nullptr;
  int32_t end = 0;  // rule.sparse_end(tokens of the whole prompt)
  SequenceSummaries* summaries = nullptr;
  const SparseProfile* profile = nullptr;  // null = none
  SelectionObserver* observer = nullptr;   // of the prompt's tiles
};

// One sequence's share of a step: new tokens at positions [begin, begin + tokens.size()).
struct StepSequence {
  std::span<const TokenId> tokens;  // each in [0, vocab_size); exactly one for kGenerate
  int32_t begin = 0;
  std::span<const PageId> pages;  // logical order, covering begin + tokens.size() tokens
  Phase phase = Phase::kPrompt;
  int32_t num_logits = 0;                  // how many of the last tokens want logits
  const SparseSequence* sparse = nullptr;  // null = all rows dense
  AttentionStats* stats = nullptr;         // of full-attention layers, added to
  ProfileCollector* profiled = nullptr;    // given the queries of a prompt's full-attention layers
};

// Logits of a few of the step's rows: [num_rows, vocab_size]. `row_idx` counts the wanted rows of
// the step in order. Valid during the call only.
struct LogitRows {
  int64_t row_idx = 0;
  int64_t num_rows = 0;
  const float* values = nullptr;
};

// The KV layouts of a model's layers, for KvStore::create.
std::vector<KvLayout> kv_layouts(const ModelConfig& config, KvDType dtype);

// A step of prompt tokens, as far as its memory goes.
struct StepSize {
  int64_t num_rows = 0;
  int64_t context_tokens = 0;  // of the longest sequence
  int num_threads = 1;
};
// Memory of such a step at most: its rows and what every thread works in. An answer's tokens, far
// fewer, are not counted.
int64_t step_bytes(const ModelConfig& config, const KernelTable& kernels, const StepSize& size);

class Decoder {
 public:
  // `model` and `kernels` must outlive the decoder.
  Decoder(const Model& model, const KernelTable& kernels);
  ~Decoder();

  // What earlier steps have made it keep.
  int64_t scratch_bytes() const;

  // Writes K and V of the new tokens to `kv` and hands the wanted logits to `on_logits`, in order,
  // a few rows at a time. Requires all kPrompt sequences before all kGenerate ones. A row's results
  // depend on its own sequence's tokens alone: not on chunk sizes, neighbours or threads. Once
  // `cancel` is set the rest of the logits, which take longer than all layers where many are
  // wanted, is left out; whether none was.
  bool run_step(std::span<const StepSequence> step, KvStore& kv, ThreadPool& pool,
                FunctionRef<void(const LogitRows&)> on_logits,
                const std::atomic<bool>* cancel = nullptr);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
