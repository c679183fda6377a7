// The JSON objects of the OpenAI API that several endpoints share.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "server/answer_stream.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

boost::json::array ids_json(const std::vector<TokenId>& ids);
// `choices` of a chunk.
boost::json::array one_element(boost::json::object element);

// What every object of one answer says of itself.
struct AnswerHead {
  std::string id;
  int64_t created = 0;  // seconds since 1970
  std::string model;
};

// A prefix and random letters, made here and nowhere else.
std::string new_answer_id(std::string_view prefix);
AnswerHead new_answer_head(std::string_view id_prefix, std::string model);

struct UsageCounts {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;
};
boost::json::object usage_json(const UsageCounts& usage);

// "stop" or "length".
std::string_view finish_reason(const RequestEnd& end);
// The same of a chat: "tool_calls" after calls, unless the answer was cut off.
std::string_view chat_finish_reason(const RequestEnd& end, bool called_tools);
// What ended the answer: the stop string, the id of a token that is no declared end, or null.
boost::json::value stop_reason(const AnswerEnd& end, const Tokenizer& tokenizer);

boost::json::object timings_json(const RequestEnd& end);
// While the answer goes on, after `generated` tokens.
boost::json::object timings_json(const AnswerToken& token, int64_t prompt_tokens,
                                 int64_t generated);
boost::json::object progress_json(const PrefillProgress& progress);

// A token as a string of its own: its text, or "bytes:\xe2\x82" where that is no UTF-8. Different
// tokens of a list may still read alike.
std::string token_text(const Tokenizer& tokenizer, TokenId id);
// A finite number: what is impossible counts as -9999.
double shown_logprob(float logprob);
// One element of a chat's logprobs.content.
boost::json::object chat_logprob(const Tokenizer& tokenizer, const ScoredToken& token);

}  // namespace winnow
