#include "constrain/answer_grammar.h"

#include <boost/json.hpp>
#include <utility>

#include "base/escape.h"
#include "constrain/gbnf.h"
#include "constrain/json_rules.h"
#include "constrain/schema_grammar.h"
#include "constrain/text_grammar.h"

namespace winnow {
namespace {

namespace json = boost::json;

class AnswerGrammarBuilder {
 public:
  AnswerGrammarBuilder(const AnswerFormat& format, const TokenTable& tokens)
      : format_(format), tokens_(tokens), rules_(builder_) {}

  Result<Grammar> build(const AnswerRules& rules, bool starts_in_reasoning);

 private:
  struct Tool {
    std::string name;
    RuleId arguments;
  };

  // `text` as it is, or the control token of that name.
  StateId mark(std::string_view text, StateId next);
  StateId text_up_to(std::string_view mark_text, StateId next);
  StateId any_breaks(StateId next);
  StateId after_reasoning(bool starts_in_reasoning, StateId next);
  StateId final_answer(RuleId rule);
  StateId after_blank(StateId next);

  Result<std::vector<Tool>> add_tools(const AnswerRules& rules);
  StateId calls(const std::vector<Tool>& tools, bool several);
  // {"name": "NAME", "`key`": ARGUMENTS} of one of the tools.
  StateId call_object(const std::vector<Tool>& tools, std::string_view key, StateId next);
  StateId call_list(const std::vector<Tool>& tools, bool several);
  StateId deepseek_calls(const std::vector<Tool>& tools, bool several);
  StateId harmony_call(const std::vector<Tool>& tools);

  const AnswerFormat& format_;
  const TokenTable& tokens_;
  GrammarBuilder builder_;
  JsonRules rules_;
};

StateId AnswerGrammarBuilder::mark(std::string_view text, StateId next) {
  const std::optional<uint8_t> control = tokens_.control_index(text);
  if (!control) return builder_.literal(text, next);
  const StateId index = builder_.bytes(*control, *control, next);
  return builder_.bytes(kControlByte, kControlByte, index);
}

// Any text up to `mark_text`. As a control token it cannot be confused with text.
StateId AnswerGrammarBuilder::text_up_to(std::string_view mark_text, StateId next) {
  if (!tokens_.control_index(mark_text)) return text_until(builder_, mark_text, next);
  const StateId loop = builder_.open_split();
  const StateId character = any_of(builder_, complement({}), loop);
  builder_.define_split(loop, {character, mark(mark_text, next)});
  return loop;
}

// Up to two line breaks.
StateId AnswerGrammarBuilder::any_breaks(StateId next) {
  const StateId one = builder_.optional(builder_.literal("\n", next), next);
  return builder_.optional(builder_.literal("\n", one), next);
}

StateId AnswerGrammarBuilder::after_reasoning(bool starts_in_reasoning, StateId next) {
  if (format_.reasoning == ReasoningStyle::kHarmony) {
    const StateId again = mark(marker::kHarmonyStart, builder_.literal("assistant", next));
    const StateId thoughts = mark(marker::kHarmonyMessage, text_up_to(marker::kHarmonyEnd, again));
    const StateId analysis = mark(marker::kHarmonyChannel, builder_.literal("analysis", thoughts));
    return builder_.optional(analysis, next);
  }
  if (format_.reasoning == ReasoningStyle::kNone) return next;
  const StateId thoughts = text_up_to(marker::kThinkEnd, any_breaks(next));
  if (starts_in_reasoning) return thoughts;
  return builder_.optional(mark(marker::kThink, thoughts), next);
}

StateId AnswerGrammarBuilder::final_answer(RuleId rule) {
  const StateId text = builder_.call(rule, builder_.done());
  if (format_.reasoning == ReasoningStyle::kHarmony) {
    const StateId message = mark(marker::kHarmonyMessage, text);
    return mark(marker::kHarmonyChannel, builder_.literal("final", message));
  }
  return text;
}

// Some tokenizers begin every text with a blank, and JSON may.
StateId AnswerGrammarBuilder::after_blank(StateId next) {
  return builder_.split({next, builder_.literal(" ", next), builder_.literal("\n", next)});
}

Result<std::vector<AnswerGrammarBuilder::Tool>> AnswerGrammarBuilder::add_tools(
    const AnswerRules& rules) {
  std::vector<Tool> tools;
  for (const ToolDescription& tool : rules.tools) {
    auto arguments = add_schema(builder_, rules_, tool.parameters);
    if (!arguments.ok()) {
      return fail(arguments.error().code, "parameters of tool '%s': %s",
                  escaped(tool.name, 80).c_str(), arguments.error().message.c_str());
    }
    tools.push_back({tool.name, *arguments});
  }
  return tools;
}

StateId AnswerGrammarBuilder::call_object(const std::vector<Tool>& tools, std::string_view key,
                                          StateId next) {
  const StateId end = builder_.literal("}", next);
  std::vector<StateId> targets;
  for (const Tool& tool : tools) {
    const std::string begin =
        "{\"name\": \"" + json_escaped(tool.name) + "\", \"" + std::string(key) + "\": ";
    targets.push_back(builder_.literal(begin, builder_.call(tool.arguments, end)));
  }
  return builder_.split(std::move(targets));
}

// An array of calls.
StateId AnswerGrammarBuilder::call_list(const std::vector<Tool>& tools, bool several) {
  const StateId after = builder_.open_split();
  const StateId first = call_object(tools, "arguments", after);
  std::vector<StateId> targets = {builder_.literal("]", builder_.done())};
  if (several) targets.push_back(builder_.literal(", ", first));
  builder_.define_split(after, std::move(targets));
  return builder_.literal("[", first);
}

StateId AnswerGrammarBuilder::deepseek_calls(const std::vector<Tool>& tools, bool several) {
  const StateId after = builder_.open_split();
  const StateId close = builder_.literal("\n```", mark(marker::kDeepSeekCallEnd, after));
  std::vector<StateId> names;
  for (const Tool& tool : tools) {
    names.push_back(
        builder_.literal(tool.name + "\n```json\n", builder_.call(tool.arguments, close)));
  }
  const StateId name = builder_.split(std::move(names));
  const StateId call = mark(marker::kDeepSeekCall,
                            builder_.literal("function", mark(marker::kDeepSeekSeparator, name)));
  std::vector<StateId> targets = {mark(marker::kDeepSeekCallsEnd, builder_.done())};
  if (several) targets.push_back(builder_.literal("\n", call));
  builder_.define_split(after, std::move(targets));
  return mark(marker::kDeepSeekCalls, call);
}

StateId AnswerGrammarBuilder::harmony_call(const std::vector<Tool>& tools) {
  std::vector<StateId> targets;
  for (const Tool& tool : tools) {
    const StateId arguments = builder_.call(tool.arguments, builder_.done());
    const StateId type = mark(marker::kHarmonyConstrain,
                              builder_.literal("json", mark(marker::kHarmonyMessage, arguments)));
    targets.push_back(builder_.literal("commentary to=functions." + tool.name + " ", type));
  }
  return mark(marker::kHarmonyChannel, builder_.split(std::move(targets)));
}

StateId AnswerGrammarBuilder::calls(const std::vector<Tool>& tools, bool several) {
  const StateId done = builder_.done();
  switch (format_.tool_calls) {
    case ToolCallStyle::kTagged: {
      const StateId after = builder_.open_split();
      const StateId end = builder_.literal("\n", mark(marker::kToolCallEnd, after));
      const StateId call =
          mark(marker::kToolCall, builder_.literal("\n", call_object(tools, "arguments", end)));
      std::vector<StateId> targets = {done};
      if (several) targets.push_back(builder_.literal("\n", call));
      builder_.define_split(after, std::move(targets));
      return call;
    }
    case ToolCallStyle::kLlama:  // one call at a time, says its template
      return call_object(tools, "parameters", done);
    case ToolCallStyle::kMistral: {
      const StateId list = call_list(tools, several);
      return mark(marker::kMistralCalls, builder_.optional(builder_.literal(" ", list), list));
    }
    case ToolCallStyle::kGranite:
      return mark(marker::kGraniteCall, call_list(tools, several));
    case ToolCallStyle::kDeepSeek:
      return deepseek_calls(tools, several);
    case ToolCallStyle::kHarmony:
      return harmony_call(tools);
    case ToolCallStyle::kNone:
      break;
  }
  return builder_.dead_end();
}

Result<Grammar> AnswerGrammarBuilder::build(const AnswerRules& rules, bool starts_in_reasoning) {
  StateId answer = 0;
  if (rules.schema) {
    TRY(const RuleId value, add_schema(builder_, rules_, *rules.schema));
    answer = final_answer(value);
    if (format_.reasoning != ReasoningStyle::kHarmony) answer = after_blank(answer);
  } else if (rules.gbnf) {
    TRY(const RuleId text, add_gbnf(builder_, *rules.gbnf));
    answer = final_answer(text);
  } else {
    if (format_.tool_calls == ToolCallStyle::kNone) {
      return fail(ErrorCode::kUnsupported,
                  "tool_choice: the model's chat template has no form for calls of tools");
    }
    TRY(const std::vector<Tool> tools, add_tools(rules));
    answer = calls(tools, rules.several_calls);
  }
  const RuleId root = builder_.declare_rule();
  builder_.define_rule(root, after_reasoning(starts_in_reasoning, answer));
  Result<Grammar> grammar = std::move(builder_).finish(root);
  if (grammar.ok() || !rules.gbnf) return grammar;
  return fail(grammar.error().code, "grammar: %s", grammar.error().message.c_str());
}

// A tool of a request, as chat completions or responses describe it; a name that could be taken for
// something else is refused.
Result<ToolDescription> read_tool(const json::value& tool) {
  const json::object* object = tool.if_object();
  const json::value* function = object == nullptr ? nullptr : object->if_contains("function");
  const json::object* described = function == nullptr ? object : function->if_object();
  const json::value* name = described == nullptr ? nullptr : described->if_contains("name");
  if (name == nullptr || !name->is_string()) {
    return fail(ErrorCode::kInvalidArgument, "tools: expected the name of every function");
  }
  const std::string_view text = name->get_string();
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-.";
  const bool is_name = !text.empty() && text.size() <= 128 &&
                       text.find_first_not_of(kLetters) == std::string_view::npos;
  if (!is_name) {
    return fail(ErrorCode::kInvalidArgument,
                "tools: expected a name of at most 128 letters, digits, '_', '-' and '.', found "
                "'%s'",
                escaped(text, 80).c_str());
  }
  const json::value* parameters = described->if_contains("parameters");
  const bool has_schema = parameters != nullptr && !parameters->is_null();
  return ToolDescription{std::string(text),
                         has_schema ? *parameters : json::value(json::object{{"type", "object"}})};
}

const json::value* member(const json::object& object, std::string_view name) {
  const json::value* found = object.if_contains(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

// Tools of other types are none that a model calls here.
bool is_function(const json::value& tool) {
  const json::object* object = tool.if_object();
  const json::value* type = object == nullptr ? nullptr : object->if_contains("type");
  return type == nullptr || *type == "function";
}

// The name that tool_choice gives; empty with "required"; nothing if calls are not demanded.
Result<std::optional<std::string>> demanded_tool(const json::object& request) {
  const json::value* choice = member(request, "tool_choice");
  if (choice == nullptr) return std::optional<std::string>();
  if (const json::string* word = choice->if_string()) {
    if (*word == "required") return std::optional<std::string>("");
    if (*word == "auto" || *word == "none") return std::optional<std::string>();
  } else if (const json::object* object = choice->if_object()) {
    const json::value* function = member(*object, "function");
    const json::object* named = function == nullptr ? object : function->if_object();
    const json::value* name = named == nullptr ? nullptr : member(*named, "name");
    if (name != nullptr && name->is_string() && !name->get_string().empty()) {
      return std::optional<std::string>(name->get_string());
    }
  }
  return fail(ErrorCode::kInvalidArgument,
              "tool_choice: expected auto, none, required or the name of a function");
}

Result<std::vector<ToolDescription>> demanded_tools(const json::object& request,
                                                    const std::string& name) {
  std::vector<ToolDescription> demanded;
  const json::value* tools = member(request, "tools");
  if (tools != nullptr && tools->is_array()) {
    for (const json::value& tool : tools->get_array()) {
      if (!is_function(tool)) continue;
      TRY(ToolDescription described, read_tool(tool));
      if (name.empty() || described.name == name) demanded.push_back(std::move(described));
    }
  }
  if (demanded.empty()) {
    return fail(ErrorCode::kInvalidArgument, "tool_choice: expected one of tools, found '%s'",
                name.empty() ? "required" : escaped(name, 80).c_str());
  }
  return demanded;
}

Result<std::optional<json::value>> demanded_schema(const json::object& request) {
  const json::value* format = member(request, "response_format");
  if (format == nullptr) {
    const json::value* schema = member(request, "json_schema");
    return schema == nullptr ? std::optional<json::value>() : std::optional(*schema);
  }
  const json::object* object = format->if_object();
  const json::value* type = object == nullptr ? nullptr : member(*object, "type");
  if (type == nullptr || !type->is_string()) {
    return fail(ErrorCode::kInvalidArgument, "response_format: expected an object with a type");
  }
  const std::string_view name = type->get_string();
  if (name == "text") return std::optional<json::value>();
  if (name == "json_object") {
    const json::value* schema = member(*object, "schema");
    return std::optional(schema != nullptr ? *schema
                                           : json::value(json::object{{"type", "object"}}));
  }
  if (name != "json_schema") {
    return fail(ErrorCode::kUnsupported,
                "response_format.type: expected text, json_object or json_schema, found '%s'",
                escaped(name, 80).c_str());
  }
  const json::value* wrapper = member(*object, "json_schema");
  // The Responses API has the schema beside the type.
  const json::object* holder = wrapper == nullptr ? object : wrapper->if_object();
  const json::value* schema = holder == nullptr ? nullptr : member(*holder, "schema");
  if (schema == nullptr) {
    return fail(ErrorCode::kInvalidArgument,
                "response_format.json_schema.schema: expected a JSON schema, found none");
  }
  return std::optional(*schema);
}

}  // namespace

Result<std::optional<AnswerRules>> read_answer_rules(const json::object& request) {
  AnswerRules rules;
  TRY(rules.schema, demanded_schema(request));
  if (const json::value* gbnf = member(request, "grammar")) {
    if (!gbnf->is_string()) {
      return fail(ErrorCode::kInvalidArgument, "grammar: expected a string");
    }
    if (rules.schema) {
      return fail(ErrorCode::kInvalidArgument,
                  "grammar: expected no response_format or json_schema beside it, found one");
    }
    rules.gbnf = std::string(gbnf->get_string());
  }
  TRY(const std::optional<std::string> tool, demanded_tool(request));
  if (tool) {
    TRY(rules.tools, demanded_tools(request, *tool));
    if (rules.gbnf) {
      return fail(ErrorCode::kInvalidArgument,
                  "grammar: expected no tool_choice that demands a call beside it, found one");
    }
    // A call is not what the schema speaks of.
    rules.schema.reset();
    const json::value* parallel = member(request, "parallel_tool_calls");
    const bool refused = parallel != nullptr && parallel->is_bool() && !parallel->get_bool();
    rules.several_calls = tool->empty() && !refused;
  }
  if (!rules.schema && !rules.gbnf && rules.tools.empty()) return std::optional<AnswerRules>();
  return std::optional(std::move(rules));
}

std::vector<std::string> tool_names_of(const json::object& request) {
  std::vector<std::string> names;
  const json::value* choice = member(request, "tool_choice");
  const json::value* tools = member(request, "tools");
  const bool none = choice != nullptr && choice->is_string() && choice->get_string() == "none";
  if (none || tools == nullptr || !tools->is_array()) return names;
  for (const json::value& tool : tools->get_array()) {
    if (!is_function(tool)) continue;
    if (auto described = read_tool(tool); described.ok()) names.push_back(described->name);
  }
  return names;
}

Result<std::shared_ptr<const Grammar>> answer_grammar(const AnswerRules& rules,
                                                      const AnswerFormat& format,
                                                      bool starts_in_reasoning,
                                                      const TokenTable& tokens) {
  TRY(Grammar grammar, AnswerGrammarBuilder(format, tokens).build(rules, starts_in_reasoning));
  return std::make_shared<const Grammar>(std::move(grammar));
}

}  // namespace winnow
