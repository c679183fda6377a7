#include "server/answer_shape.h"

#include "constrain/answer_grammar.h"
#include "constrain/grammar_constraint.h"

namespace winnow {
namespace {

namespace json = boost::json;

// `request` with llama-server's json_schema under OpenAI's name, and without the empty grammar that
// its clients send for none.
Result<json::object> in_openai_form(const json::object& request) {
  const RequestFields fields(request, kChat);
  json::object form = request;
  if (fields.text("grammar").value_or("").empty()) form.erase("grammar");
  if (const json::object* schema = fields.object("json_schema")) {
    if (fields.object("response_format") != nullptr) {
      return fail(ErrorCode::kInvalidArgument,
                  "json_schema: expected none beside response_format, found one");
    }
    form["response_format"] = {{"type", "json_schema"},
                               {"json_schema", {{"name", "answer"}, {"schema", *schema}}}};
  }
  return form;
}

std::vector<TokenId> control_tokens_of(const Tokenizer& tokenizer,
                                       const std::vector<std::string>& markers) {
  std::vector<TokenId> found;
  for (const std::string& marker : markers) {
    const std::vector<TokenId> ids = tokenizer.encode_with_special(marker);
    if (ids.size() == 1 && tokenizer.is_control(ids.front())) found.push_back(ids.front());
  }
  return found;
}

}  // namespace

AnswerParserOptions parser_options(const AnswerShape& shape) {
  AnswerParserOptions options = shape.parser;
  options.id_seed = random_seed();
  return options;
}

AnswerShaper::AnswerShaper(std::string_view chat_template, const Tokenizer& tokenizer)
    : format_(answer_format_of(chat_template)) {
  const std::vector<std::string> markers = answer_markers();
  tokens_ = std::make_shared<const TokenTable>(tokenizer, markers);
  const bool marked =
      format_.tool_calls != ToolCallStyle::kNone || format_.reasoning != ReasoningStyle::kNone;
  if (marked) shown_control_tokens_ = control_tokens_of(tokenizer, markers);
}

Status AnswerShaper::add_grammar(const json::object& request, const GenerationSettings& settings,
                                 AnswerShape& shape) const {
  TRY(const json::object form, in_openai_form(request));
  TRY(const std::optional<AnswerRules> rules, read_answer_rules(form));
  if (!rules) return Ok{};
  const AnswerParserOptions& parser = shape.parser;
  TRY(shape.grammar, answer_grammar(*rules, parser.format, parser.starts_in_reasoning, *tokens_));
  // The grammar alone says when the answer may end.
  if (settings.min_tokens > 0) {
    return fail(ErrorCode::kInvalidArgument,
                "min_tokens: expected 0 where the form of the answer is given, found %lld",
                static_cast<long long>(settings.min_tokens));
  }
  if (settings.end_tokens.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "ignore_eos: expected false where the form of the answer is given, found true");
  }
  return Ok{};
}

Result<AnswerShape> AnswerShaper::chat_shape(const json::object& request, std::string_view prompt,
                                             const GenerationSettings& settings) const {
  AnswerShape shape;
  shape.parser.format = format_;
  shape.parser.starts_in_reasoning = opens_reasoning(format_, prompt);
  shape.parser.tool_names = tool_names_of(request);
  shape.shown_control_tokens = shown_control_tokens_;
  TRY_STATUS(add_grammar(request, settings, shape));
  return shape;
}

Result<AnswerShape> AnswerShaper::text_shape(const json::object& request,
                                             const GenerationSettings& settings) const {
  AnswerShape shape;
  json::object form;
  for (const char* field : {"response_format", "json_schema", "grammar"}) {
    if (const json::value* given = request.if_contains(field)) form[field] = *given;
  }
  TRY_STATUS(add_grammar(form, settings, shape));
  return shape;
}

std::unique_ptr<TokenConstraint> AnswerShaper::constraint(
    const AnswerShape& shape, const GenerationSettings& settings) const {
  if (!shape.grammar) return nullptr;
  return std::make_unique<GrammarConstraint>(shape.grammar, tokens_, settings.end_tokens);
}

}  // namespace winnow
