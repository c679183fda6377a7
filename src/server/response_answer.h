// The answers of /v1/responses: one object, or the events of its making.
#pragma once

#include <boost/json/object.hpp>
#include <memory>

#include "server/answer_run.h"
#include "server/answer_shape.h"
#include "server/chat_request.h"
#include "server/openai_types.h"

namespace winnow {

// `request` is the body as it came: parts of it are repeated in the answer.
std::unique_ptr<AnswerWriter> response_answer_writer(AnswerHead head, const ChatRequest& chat,
                                                     const AnswerShape& shape,
                                                     const boost::json::object& request,
                                                     const AnswerParserFactory& parsers);

}  // namespace winnow
