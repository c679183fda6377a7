// StepRunner: feeds sequences through a Decoder in whatever chunks a test asks for.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/table.h"
#include "kv/kv_store.h"
#include "model/decoder.h"
#include "model/model.h"

namespace winnow::test {

struct FedSequence {
  std::vector<TokenId> tokens;  // whose K and V are in the cache
  std::vector<PageId> pages;
  std::vector<float> logits;  // of the last token fed
};

class StepRunner {
 public:
  StepRunner(const Model& model, const KernelTable& kernels, int num_threads, int64_t num_pages,
             KvDType dtype = KvDType::kBf16)
      : vocab_size_(model.config().vocab_size),
        pool_(num_threads),
        decoder_(model, kernels),
        kv_(std::move(KvStore::create(kv_layouts(model.config(), dtype), num_pages)).value()) {}

  struct Part {
    FedSequence* sequence;
    std::vector<TokenId> tokens;
    Phase phase;
  };

  // One step of all parts (prompts first), each keeping the logits of its last token.
  void step(std::vector<Part> parts) {
    std::vector<StepSequence> step;
    for (Part& part : parts) {
      FedSequence& sequence = *part.sequence;
      const size_t end = sequence.tokens.size() + part.tokens.size();
      while (sequence.pages.size() * kPageTokens < end)
        sequence.pages.push_back(kv_->pool().take().value());
      step.push_back({part.tokens, static_cast<int32_t>(sequence.tokens.size()), sequence.pages,
                      part.phase, 1});
    }
    decoder_.run_step(step, *kv_, pool_, [&](const LogitRows& rows) {
      for (int64_t i = 0; i < rows.num_rows; ++i) {
        const float* values = rows.values + i * vocab_size_;
        parts[static_cast<size_t>(rows.row_idx + i)].sequence->logits.assign(values,
                                                                             values + vocab_size_);
      }
    });
    for (Part& part : parts) {
      part.sequence->tokens.insert(part.sequence->tokens.end(), part.tokens.begin(),
                                   part.tokens.end());
    }
  }

  // Feeds a prompt in chunks that end at multiples of `chunk`.
  void prefill(FedSequence& sequence, std::span<const TokenId> prompt, size_t chunk) {
    for (size_t begin = 0; begin < prompt.size();) {
      const size_t end = std::min(prompt.size(), (begin / chunk + 1) * chunk);
      step({{&sequence, {prompt.begin() + begin, prompt.begin() + end}, Phase::kPrompt}});
      begin = end;
    }
  }

  static TokenId greedy(const FedSequence& sequence) {
    return static_cast<TokenId>(std::max_element(sequence.logits.begin(), sequence.logits.end()) -
                                sequence.logits.begin());
  }

  // The logits after the prompt and after each of `count` greedily generated tokens.
  std::vector<std::vector<float>> generate(FedSequence& sequence, int count) {
    std::vector<std::vector<float>> logits = {sequence.logits};
    for (int i = 0; i < count; ++i) {
      step({{&sequence, {greedy(sequence)}, Phase::kGenerate}});
      logits.push_back(sequence.logits);
    }
    return logits;
  }

 private:
  int64_t vocab_size_;
  ThreadPool pool_;
  Decoder decoder_;
  std::unique_ptr<KvStore> kv_;
};

}  // namespace winnow::test
