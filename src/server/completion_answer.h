// The answers of /v1/completions: one body, or a stream of chunks.
#pragma once

#include <memory>

#include "server/answer_run.h"
#include "server/completion_request.h"
#include "server/openai_types.h"

namespace winnow {

// `tokenizer` must outlive the writer. Choice i answers prompt i / best_of.
std::unique_ptr<AnswerWriter> completion_answer_writer(AnswerHead head, CompletionRequest request,
                                                       const Tokenizer& tokenizer);

}  // namespace winnow
