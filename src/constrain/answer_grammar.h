// The grammar of a whole answer: JSON, or calls of given tools in the form of the model's family,
// after the reasoning if the family reasons.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "constrain/answer_format.h"
#include "constrain/grammar.h"
#include "constrain/token_table.h"

namespace winnow {

struct ToolDescription {
  std::string name;
  boost::json::value parameters;  // a JSON schema
};

// Exactly one of the two is asked for.
struct AnswerRules {
  std::optional<boost::json::value> schema = {};  // the answer is JSON that satisfies this
  std::vector<ToolDescription> tools = {};        // the answer calls one of these
  bool several_calls = true;                      // or more, one after the other
};

// What a chat request asks for with response_format, tools, tool_choice and parallel_tool_calls;
// nothing if any answer will do. JSON mode (json_object) is the schema of any object. "strict" is
// not read: a schema that is given always holds. kInvalidArgument or kUnsupported naming the field.
Result<std::optional<AnswerRules>> read_answer_rules(const boost::json::object& request);

// Names of the tools of a request that an answer may call; none with tool_choice "none".
std::vector<std::string> tool_names_of(const boost::json::object& request);

// `tokens` were made with answer_markers(). `starts_in_reasoning` as in AnswerParserOptions.
// kUnsupported if tools are asked for and the family has no form for calls, or for a keyword of a
// schema; the message names the tool.
Result<std::shared_ptr<const Grammar>> answer_grammar(const AnswerRules& rules,
                                                      const AnswerFormat& format,
                                                      bool starts_in_reasoning,
                                                      const TokenTable& tokens);

}  // namespace winnow
