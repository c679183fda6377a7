// The answers of /v1/chat/completions: one body, or a stream of chunks.
#pragma once

#include <memory>

#include "server/answer_run.h"
#include "server/answer_shape.h"
#include "server/chat_request.h"
#include "server/openai_types.h"

namespace winnow {

// `tokenizer` must outlive the writer; `parsers` makes one parser per choice,
// of the shape.
std::unique_ptr<AnswerWriter> chat_answer_writer(AnswerHead head, const ChatRequest& request,
                                                 std::vector<TokenId> prompt,
                                                 const AnswerShape& shape,
                                                 const Tokenizer& tokenizer,
                                                 const AnswerParserFactory& parsers);

}  // namespace winnow
