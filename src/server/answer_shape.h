// AnswerShape: what an answer may and will look like: the model family's form of reasoning and tool
// calls, and the grammar that a request asks for.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "constrain/answer_format.h"
#include "constrain/answer_parser.h"
#include "constrain/grammar.h"
#include "constrain/token_table.h"
#include "server/generation_settings.h"
#include "tokenizer/tokenizer.h"

namespace winnow {

struct AnswerShape {
  AnswerParserOptions parser = {};
  std::shared_ptr<const Grammar> grammar = {};     // null: any text
  std::vector<TokenId> shown_control_tokens = {};  // those that the parser reads
};

using AnswerParserFactory = std::function<std::unique_ptr<AnswerParser>(AnswerParserOptions)>;

// For one choice: the ids of its calls are its own.
AnswerParserOptions parser_options(const AnswerShape& shape);

// Knows the model; made once.
class AnswerShaper {
 public:
  // `chat_template` may be empty. `tokenizer` must outlive this.
  AnswerShaper(std::string_view chat_template, const Tokenizer& tokenizer);

  // Of the answer to a conversation. `request` in the form of a chat request; `prompt` as rendered.
  // kInvalidArgument or kUnsupported naming a field.
  Result<AnswerShape> chat_shape(const boost::json::object& request, std::string_view prompt,
                                 const GenerationSettings& settings) const;
  // Of a continued text, which has no calls and no reasoning.
  Result<AnswerShape> text_shape(const boost::json::object& request,
                                 const GenerationSettings& settings) const;

  // Keeps one choice within the grammar. Null if there is none.
  std::unique_ptr<TokenConstraint> constraint(const AnswerShape& shape,
                                              const GenerationSettings& settings) const;

 private:
  Status add_grammar(const boost::json::object& request, const GenerationSettings& settings,
                     AnswerShape& shape) const;

  AnswerFormat format_;
  std::shared_ptr<const TokenTable> tokens_;
  std::vector<TokenId> shown_control_tokens_;
};

}  // namespace winnow
