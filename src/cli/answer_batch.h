// AnswerBatch: answers made side by side by the engine that serves, for measuring how fast they
// come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "attention/sparse_rule.h"
#include "base/ids.h"
#include "base/result.h"
#include "engine/engine_options.h"
#include "model/model.h"

namespace winnow {

struct AnswerBatchShape {
  int64_t num_streams = 1;
  int64_t prompt_tokens = 1;  // of each
  int64_t num_steps = 1;      // that are measured
};

class AnswerBatch {
 public:
  // Of each stream: also while it answers and others' prompts are still read.
  static int64_t context_tokens(const AnswerBatchShape& shape);

  // `options` but for its context, which the shape decides. kOutOfMemory naming what is needed and
  // what is free.
  static Result<std::unique_ptr<AnswerBatch>> create(std::shared_ptr<const Model> model,
                                                     EngineOptions options,
                                                     const AnswerBatchShape& shape,
                                                     std::optional<SparseRule> sparse);
  ~AnswerBatch();

  // Nanoseconds from one step that gave every stream a token to the num_steps-th after it.
  // kInterrupted on Ctrl+C; nothing may be run then. Requires num_streams prompts of prompt_tokens.
  Result<double> run(std::vector<std::vector<TokenId>> prompts);

 private:
  struct Impl;
  explicit AnswerBatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow
