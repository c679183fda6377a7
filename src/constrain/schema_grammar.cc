#include "constrain/schema_grammar.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/escape.h"
#include "constrain/json_literal.h"
#include "constrain/number_range.h"
#include "constrain/pattern.h"
#include "constrain/schema_merge.h"
#include "constrain/string_formats.h"
#include "constrain/text_grammar.h"

namespace winnow {
namespace {

// A part of a path: paths are kept with every rule, and only their beginning is ever shown.
std::string shortened(std::string_view name) { return std::string(name.substr(0, 80)); }

namespace json = boost::json;

constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                    "integer", "boolean", "null"};
constexpr std::array<std::string_view, 3> kObjectKeywords = {"properties", "required",
                                                             "additionalProperties"};
constexpr std::array<std::string_view, 4> kArrayKeywords = {"items", "prefixItems", "minItems",
                                                            "maxItems"};
constexpr std::array<std::string_view, 4> kStringKeywords = {"minLength", "maxLength", "pattern",
                                                             "format"};
constexpr std::array<std::string_view, 4> kNumberKeywords = {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"};
constexpr std::array<std::string_view, 7> kOtherKeywords = {"type",  "enum",  "const", "anyOf",
                                                            "oneOf", "allOf", "$ref"};

template <size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_known(std::string_view keyword) {
  return is_annotation(keyword) || is_one_of(keyword, kObjectKeywords) ||
         is_one_of(keyword, kArrayKeywords) || is_one_of(keyword, kStringKeywords) ||
         is_one_of(keyword, kNumberKeywords) || is_one_of(keyword, kOtherKeywords);
}

bool has_type(const json::value& value, std::string_view type) {
  switch (value.kind()) {
    case json::kind::null:
      return type == "null";
    case json::kind::bool_:
      return type == "boolean";
    case json::kind::string:
      return type == "string";
    case json::kind::array:
      return type == "array";
    case json::kind::object:
      return type == "object";
    case json::kind::int64:
    case json::kind::uint64:
      return type == "number" || type == "integer";
    case json::kind::double_: {
      const double number = value.get_double();
      return type == "number" || (type == "integer" && std::trunc(number) == number);
    }
  }
  return false;
}

// Turns schemas into rules one after the other: a schema within another is a call of a rule that is
// defined later, so nothing recurses.
class SchemaCompiler {
 public:
  SchemaCompiler(GrammarBuilder& builder, JsonRules& rules, const json::value& root)
      : builder_(builder), rules_(rules), root_(root) {}

  Result<RuleId> compile();

 private:
  struct Place {
    const json::value* schema;
    std::string path;
    RuleId rule;
  };
  using Object = json::object;

  Error refuse(const std::string& path, std::string_view keyword, const char* why) const {
    return fail(ErrorCode::kUnsupported, "schema at '%s': '%s' is not supported%s",
                escaped(path, 200).c_str(), escaped(keyword, 80).c_str(), why);
  }
  Error wrong(const std::string& path, std::string_view keyword, const char* expected) const {
    return fail(ErrorCode::kInvalidArgument, "schema at '%s': '%s': expected %s",
                escaped(path, 200).c_str(), escaped(keyword, 80).c_str(), expected);
  }

  // The rule of a schema, to be defined in its turn.
  RuleId rule_of(const json::value& schema, const std::string& path);
  Result<const json::value*> resolve(std::string_view reference, const std::string& path) const;

  Result<StateId> schema_state(const json::value& schema, const std::string& path);
  Result<StateId> object_schema(const Object& schema, const std::string& path);
  Status check_keywords(const Object& schema, const std::string& path) const;
  // That nothing but `keyword` and annotations is given; `also` may be given too.
  Status check_alone(const Object& schema, std::string_view keyword, std::string_view also,
                     const std::string& path) const;

  Result<StateId> choice(const Object& schema, std::string_view keyword, const std::string& path);
  Result<StateId> literals(const Object& schema, const std::string& path);
  Result<std::vector<std::string_view>> types_of(const Object& schema,
                                                 const std::string& path) const;
  Result<StateId> typed(std::string_view type, const Object& schema, const std::string& path);

  Result<StateId> object(const Object& schema, const std::string& path);
  Result<StateId> array(const Object& schema, const std::string& path);
  Result<StateId> string(const Object& schema, const std::string& path);
  Result<StateId> integer(const Object& schema, const std::string& path);
  Result<StateId> number(const Object& schema, const std::string& path);

  struct Property {
    std::string name;
    RuleId rule = 0;
    bool required = false;
  };
  Result<std::vector<Property>> properties_of(const Object& schema, const std::string& path);
  // The rule of properties that have no schema of their own; none if there are to be none.
  std::optional<RuleId> additional_rule(const Object& schema, const std::string& path);
  StateId members(const std::vector<Property>& properties, std::optional<RuleId> additional);

  struct Limits {
    int32_t min = 0;
    int32_t max = kEndless;
  };
  Result<Limits> limits_of(const Object& schema, std::string_view min, std::string_view max,
                           const std::string& path) const;
  Result<std::optional<double>> bound(const Object& schema, std::string_view keyword,
                                      const std::string& path) const;

  GrammarBuilder& builder_;
  JsonRules& rules_;
  const json::value& root_;
  std::deque<Place> places_;  // rules to be defined
  std::unordered_map<const json::value*, RuleId> rule_of_;
  std::deque<json::value> merged_;  // schemas that allOf was written out of
  int64_t merge_budget_ = 10 * static_cast<int64_t>(kMaxSchemaValues);  // values copied
};

RuleId SchemaCompiler::rule_of(const json::value& schema, const std::string& path) {
  const auto [known, is_new] = rule_of_.try_emplace(&schema, 0);
  if (is_new) {
    known->second = builder_.declare_rule();
    places_.push_back({&schema, path, known->second});
  }
  return known->second;
}

Result<RuleId> SchemaCompiler::compile() {
  if (!is_within_depth(root_, kMaxSchemaDepth)) {
    return fail(ErrorCode::kInvalidArgument, "schema: expected values at most %zu deep",
                kMaxSchemaDepth);
  }
  if (num_values(root_) > kMaxSchemaValues) {
    return fail(ErrorCode::kInvalidArgument, "schema: expected at most %zu JSON values, found %zu",
                kMaxSchemaValues, num_values(root_));
  }
  const RuleId root = rule_of(root_, "#");
  while (!places_.empty()) {
    const Place place = std::move(places_.front());
    places_.pop_front();
    if (builder_.is_full()) {
      return fail(ErrorCode::kInvalidArgument, "schema: expected at most %d states, found more",
                  kMaxGrammarStates);
    }
    TRY(const StateId start, schema_state(*place.schema, place.path));
    builder_.define_rule(place.rule, start);
  }
  return root;
}

Result<const json::value*> SchemaCompiler::resolve(std::string_view reference,
                                                   const std::string& path) const {
  if (reference != "#" && !reference.starts_with("#/")) {
    return refuse(path, "$ref", ": only references within the schema ('#/...') are");
  }
  boost::system::error_code error;
  const json::value* target = root_.find_pointer(reference.substr(1), error);
  if (target == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "schema at '%s': $ref '%s' leads nowhere",
                escaped(path, 200).c_str(), escaped(reference, 200).c_str());
  }
  return target;
}

Result<StateId> SchemaCompiler::schema_state(const json::value& schema, const std::string& path) {
  if (const bool* allowed = schema.if_bool()) {
    return *allowed ? builder_.call(rules_.any_value(), builder_.done()) : builder_.dead_end();
  }
  const json::object* keywords = schema.if_object();
  if (keywords == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "schema at '%s': expected an object or a boolean",
                escaped(path, 200).c_str());
  }
  return object_schema(*keywords, path);
}

Status SchemaCompiler::check_keywords(const Object& schema, const std::string& path) const {
  for (const auto& member : schema) {
    if (!is_known(member.key())) return refuse(path, member.key(), "");
  }
  return Ok{};
}

Status SchemaCompiler::check_alone(const Object& schema, std::string_view keyword,
                                   std::string_view also, const std::string& path) const {
  for (const auto& member : schema) {
    const std::string_view other = member.key();
    if (other == keyword || other == also || is_annotation(other)) continue;
    const std::string beside = " beside '" + std::string(keyword) + "'";
    return refuse(path, other, beside.c_str());
  }
  return Ok{};
}

Result<StateId> SchemaCompiler::object_schema(const Object& schema, const std::string& path) {
  TRY_STATUS(check_keywords(schema, path));
  if (schema.contains("allOf")) {
    const auto target = [&](std::string_view reference) { return resolve(reference, path); };
    TRY(json::object whole, without_all_of(schema, path, target, merge_budget_));
    merged_.emplace_back(std::move(whole));
    return builder_.call(rule_of(merged_.back(), path), builder_.done());
  }
  if (const json::value* reference = schema.if_contains("$ref")) {
    TRY_STATUS(check_alone(schema, "$ref", "", path));
    if (!reference->is_string()) return wrong(path, "$ref", "a string");
    TRY(const json::value* target, resolve(reference->get_string(), path));
    return builder_.call(rule_of(*target, std::string(reference->get_string())), builder_.done());
  }
  for (const std::string_view keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return choice(schema, keyword, path);
  }
  if (schema.contains("enum") || schema.contains("const")) return literals(schema, path);
  TRY(const std::vector<std::string_view> types, types_of(schema, path));
  std::vector<StateId> targets;
  for (const std::string_view type : types) {
    TRY(const StateId start, typed(type, schema, path));
    targets.push_back(start);
  }
  return targets.size() == 1 ? targets[0] : builder_.split(std::move(targets));
}

Result<StateId> SchemaCompiler::choice(const Object& schema, std::string_view keyword,
                                       const std::string& path) {
  TRY_STATUS(check_alone(schema, keyword, "", path));
  const json::array* choices = schema.at(keyword).if_array();
  if (choices == nullptr || choices->empty()) return wrong(path, keyword, "an array of schemas");
  std::vector<StateId> targets;
  for (size_t i = 0; i < choices->size(); ++i) {
    const std::string place = path + "/" + std::string(keyword) + "/" + std::to_string(i);
    targets.push_back(builder_.call(rule_of((*choices)[i], place), builder_.done()));
  }
  return builder_.split(std::move(targets));
}

Result<StateId> SchemaCompiler::literals(const Object& schema, const std::string& path) {
  const bool is_enum = schema.contains("enum");
  const char* keyword = is_enum ? "enum" : "const";
  TRY_STATUS(check_alone(schema, keyword, "type", path));
  json::array values;
  if (!is_enum) {
    values.push_back(schema.at("const"));
  } else if (const json::array* given = schema.at("enum").if_array(); given && !given->empty()) {
    values = *given;
  } else {
    return wrong(path, "enum", "an array of values");
  }
  std::optional<std::vector<std::string_view>> types;
  if (schema.contains("type")) {
    TRY(types, types_of(schema, path));
  }
  std::set<std::string> texts;
  for (const json::value& value : values) {
    const bool fits = !types || std::any_of(types->begin(), types->end(),
                                            [&](auto type) { return has_type(value, type); });
    if (fits) texts.insert(json_literal(value));
  }
  return texts.empty() ? builder_.dead_end() : one_of(builder_, texts, builder_.done());
}

Result<std::vector<std::string_view>> SchemaCompiler::types_of(const Object& schema,
                                                               const std::string& path) const {
  const json::value* type = schema.if_contains("type");
  std::vector<std::string_view> types;
  if (type == nullptr) {
    for (const auto& member : schema) {
      const std::string_view keyword = member.key();
      if (is_one_of(keyword, kObjectKeywords)) types.push_back("object");
      if (is_one_of(keyword, kArrayKeywords)) types.push_back("array");
      if (is_one_of(keyword, kStringKeywords)) types.push_back("string");
      if (is_one_of(keyword, kNumberKeywords)) types.push_back("number");
    }
    std::sort(types.begin(), types.end());
    types.erase(std::unique(types.begin(), types.end()), types.end());
    if (types.empty()) types.push_back("any");
    return types;
  }
  if (const json::string* name = type->if_string()) {
    types.push_back(*name);
  } else if (const json::array* names = type->if_array(); names && !names->empty()) {
    for (const json::value& one : *names) {
      if (!one.is_string()) return wrong(path, "type", "names of types");
      types.push_back(one.get_string());
    }
  } else {
    return wrong(path, "type", "the name of a type, or an array of names");
  }
  for (const std::string_view name : types) {
    if (!is_one_of(name, kTypes)) {
      return wrong(path, "type", "object, array, string, number, integer, boolean or null");
    }
  }
  return types;
}

Result<StateId> SchemaCompiler::typed(std::string_view type, const Object& schema,
                                      const std::string& path) {
  if (type == "object") return object(schema, path);
  if (type == "array") return array(schema, path);
  if (type == "string") return string(schema, path);
  if (type == "integer") return integer(schema, path);
  if (type == "number") return number(schema, path);
  const StateId done = builder_.done();
  if (type == "null") return builder_.literal("null", done);
  if (type == "any") return builder_.call(rules_.any_value(), done);
  return builder_.split({builder_.literal("true", done), builder_.literal("false", done)});
}

Result<SchemaCompiler::Limits> SchemaCompiler::limits_of(const Object& schema, std::string_view min,
                                                         std::string_view max,
                                                         const std::string& path) const {
  Limits limits;
  for (const bool is_min : {true, false}) {
    const std::string_view keyword = is_min ? min : max;
    TRY(const std::optional<double> given, bound(schema, keyword, path));
    if (!given) continue;
    if (*given < 0 || std::trunc(*given) != *given) return wrong(path, keyword, "a whole number");
    constexpr double kMaxMin = 1'000'000;
    if (is_min && *given > kMaxMin) return wrong(path, keyword, "at most 1000000");
    if (is_min) {
      limits.min = static_cast<int32_t>(*given);
    } else if (*given < kEndless) {
      limits.max = static_cast<int32_t>(*given);
    }
  }
  return limits;
}

Result<std::optional<double>> SchemaCompiler::bound(const Object& schema, std::string_view keyword,
                                                    const std::string& path) const {
  const json::value* given = schema.if_contains(keyword);
  if (given == nullptr) return std::optional<double>();
  if (!given->is_number()) return wrong(path, keyword, "a number");
  return std::optional<double>(given->to_number<double>());
}

Result<StateId> SchemaCompiler::string(const Object& schema, const std::string& path) {
  const json::value* pattern = schema.if_contains("pattern");
  const json::value* format = schema.if_contains("format");
  TRY(const Limits limits, limits_of(schema, "minLength", "maxLength", path));
  const StateId done = builder_.done();
  if (pattern == nullptr && format == nullptr) {
    return limits.min > limits.max ? builder_.dead_end()
                                   : rules_.string(limits.min, limits.max, done);
  }
  const char* keyword = pattern != nullptr ? "pattern" : "format";
  for (const char* other : {"minLength", "maxLength", "format"}) {
    if (std::string_view(other) == keyword || !schema.contains(other)) continue;
    const std::string beside = std::string(" beside '") + keyword + "'";
    return refuse(path, other, beside.c_str());
  }
  const json::value& given = pattern != nullptr ? *pattern : *format;
  if (!given.is_string()) return wrong(path, keyword, "a string");
  std::string_view expression = given.get_string();
  if (pattern == nullptr) {
    const auto known = format_pattern(expression);
    if (!known) {
      return fail(ErrorCode::kUnsupported, "schema at '%s': format '%s' is not supported",
                  escaped(path, 200).c_str(), escaped(expression, 80).c_str());
    }
    expression = *known;
  }
  auto inside = pattern_states(builder_, rules_, expression, builder_.literal("\"", done));
  if (!inside.ok()) {
    return fail(inside.error().code, "schema at '%s': %s", escaped(path, 200).c_str(),
                inside.error().message.c_str());
  }
  return builder_.literal("\"", *inside);
}

Result<StateId> SchemaCompiler::integer(const Object& schema, const std::string& path) {
  TRY(const auto minimum, bound(schema, "minimum", path));
  TRY(const auto maximum, bound(schema, "maximum", path));
  TRY(const auto above, bound(schema, "exclusiveMinimum", path));
  TRY(const auto below, bound(schema, "exclusiveMaximum", path));
  const StateId done = builder_.done();
  if (!minimum && !maximum && !above && !below) return builder_.call(rules_.any_integer(), done);
  constexpr double kLimit = static_cast<double>(kMaxWhole - 1);
  double first = -kLimit, last = kLimit;
  if (minimum) first = std::max(first, std::ceil(*minimum));
  if (above) first = std::max(first, std::floor(*above) + 1);
  if (maximum) last = std::min(last, std::floor(*maximum));
  if (below) last = std::min(last, std::ceil(*below) - 1);
  if (first > last) return builder_.dead_end();
  return integers_between(builder_, static_cast<int64_t>(first), static_cast<int64_t>(last), done);
}

Result<StateId> SchemaCompiler::number(const Object& schema, const std::string& path) {
  DecimalBounds bounds;
  bool bounded = false;
  for (const std::string_view keyword : kNumberKeywords) {
    TRY(const auto given, bound(schema, keyword, path));
    if (!given) continue;
    bounded = true;
    const bool is_low = keyword == "minimum" || keyword == "exclusiveMinimum";
    const bool excludes = keyword.starts_with("exclusive");
    constexpr double kLimit = 1e15;
    if (std::trunc(*given) != *given || std::abs(*given) > kLimit) {
      return refuse(path, keyword, " of a number unless it is whole and at most 1e15");
    }
    const auto whole = static_cast<int64_t>(*given);
    if (is_low && (whole > bounds.low || (whole == bounds.low && excludes))) {
      bounds.low = whole;
      bounds.without_low = excludes;
    } else if (!is_low && (whole < bounds.high || (whole == bounds.high && excludes))) {
      bounds.high = whole;
      bounds.without_high = excludes;
    }
  }
  const StateId done = builder_.done();
  if (!bounded) return builder_.call(rules_.any_number(), done);
  return decimals_between(builder_, rules_, bounds, done);
}

Result<StateId> SchemaCompiler::array(const Object& schema, const std::string& path) {
  TRY(const Limits limits, limits_of(schema, "minItems", "maxItems", path));
  if (limits.min > limits.max) return builder_.dead_end();
  std::vector<RuleId> prefix;
  if (const json::value* given = schema.if_contains("prefixItems")) {
    const json::array* schemas = given->if_array();
    if (schemas == nullptr) return wrong(path, "prefixItems", "an array of schemas");
    for (size_t i = 0; i < schemas->size(); ++i) {
      prefix.push_back(rule_of((*schemas)[i], path + "/prefixItems/" + std::to_string(i)));
    }
  }
  const auto num_prefix = static_cast<int32_t>(prefix.size());
  int32_t max = limits.max;
  RuleId rest = rules_.any_value();
  if (const json::value* items = schema.if_contains("items")) {
    if (items->is_array()) return wrong(path, "items", "a schema (several are 'prefixItems')");
    rest = rule_of(*items, path + "/items");
  } else if (num_prefix > 0 && limits.min <= num_prefix) {
    max = std::min(max, num_prefix);
  }
  const StateId end = builder_.literal("]", builder_.done());
  if (max == 0) return builder_.literal("[", rules_.line_blank(end));
  const auto after_comma = [&](StateId item) {
    return builder_.literal(",", rules_.line_blank(item));
  };
  const StateId close = rules_.line_blank(end);
  const RuleId comma_item = builder_.declare_rule();
  builder_.define_rule(comma_item, after_comma(builder_.call(rest, builder_.done())));
  // From the last item that has a schema of its own backwards.
  const int32_t num_own = std::max(num_prefix, 1);
  StateId after = close;
  if (max > num_own) {
    const int32_t min_more = std::max(limits.min - num_own, 0);
    after =
        builder_.repeat(comma_item, min_more, max == kEndless ? kEndless : max - num_own, close);
  }
  StateId first = 0;
  for (int32_t i = num_own; i-- > 0;) {
    const RuleId rule = i < num_prefix ? prefix[static_cast<size_t>(i)] : rest;
    first = builder_.call(rule, i < max ? after : builder_.dead_end());
    if (i == 0) break;
    std::vector<StateId> targets = {after_comma(first)};
    if (i >= max) targets.clear();
    if (i >= limits.min) targets.push_back(close);
    after = builder_.split(std::move(targets));
  }
  return builder_.literal(
      "[", rules_.line_blank(limits.min == 0 ? builder_.optional(first, end) : first));
}

std::optional<RuleId> SchemaCompiler::additional_rule(const Object& schema,
                                                      const std::string& path) {
  const json::value* additional = schema.if_contains("additionalProperties");
  if (additional == nullptr) {
    const bool names_some = schema.contains("properties");
    return names_some ? std::nullopt : std::optional(rules_.any_value());
  }
  if (additional->is_bool() && !additional->get_bool()) return std::nullopt;
  return rule_of(*additional, path + "/additionalProperties");
}

Result<std::vector<SchemaCompiler::Property>> SchemaCompiler::properties_of(
    const Object& schema, const std::string& path) {
  std::vector<Property> properties;
  std::map<std::string, size_t, std::less<>> index;
  if (const json::value* given = schema.if_contains("properties")) {
    const json::object* named = given->if_object();
    if (named == nullptr) return wrong(path, "properties", "an object of schemas");
    for (const auto& [name, property] : *named) {
      const std::string place = path + "/properties/" + shortened(name);
      index.emplace(name, properties.size());
      properties.push_back({std::string(name), rule_of(property, place)});
    }
  }
  if (const json::value* given = schema.if_contains("required")) {
    const json::array* names = given->if_array();
    if (names == nullptr) return wrong(path, "required", "an array of names");
    for (const json::value& name : *names) {
      if (!name.is_string()) return wrong(path, "required", "an array of names");
      const auto [known, is_new] = index.emplace(name.get_string(), properties.size());
      if (is_new) {
        const bool refused =
            schema.contains("additionalProperties") && !additional_rule(schema, path);
        if (refused) return wrong(path, "required", "names that additionalProperties allows");
        const auto rule = additional_rule(schema, path);
        properties.push_back({known->first, rule ? *rule : rules_.any_value()});
      }
      properties[known->second].required = true;
    }
  }
  if (properties.size() > kMaxObjectProperties) {
    return wrong(path, "properties", "at most 256");
  }
  return properties;
}

// `after[i]` in the loop: some member came, properties from i on may; `first`: none came.
StateId SchemaCompiler::members(const std::vector<Property>& properties,
                                std::optional<RuleId> additional) {
  const StateId end = builder_.literal("}", builder_.done());
  const StateId close = rules_.line_blank(end);
  const auto after_comma = [&](StateId member) {
    return builder_.literal(",", rules_.line_blank(member));
  };
  StateId after = close, first = end;
  if (additional) {
    std::vector<std::string> names;
    for (const Property& property : properties) names.push_back(property.name);
    after = builder_.open_split();
    const StateId value = rules_.colon(builder_.call(*additional, after));
    const StateId member =
        names.empty() ? rules_.string(0, kEndless, value) : rules_.string_except(names, value);
    builder_.define_split(after, {after_comma(member), close});
    first = builder_.optional(member, end);
  }
  for (size_t i = properties.size(); i-- > 0;) {
    const Property& property = properties[i];
    const std::string key = '"' + json_escaped(property.name) + '"';
    const StateId member = builder_.literal(key, rules_.colon(builder_.call(property.rule, after)));
    std::vector<StateId> next = {after_comma(member)}, next_first = {member};
    if (!property.required) {
      next.push_back(after);
      next_first.push_back(first);
    }
    after = builder_.split(std::move(next));
    first = builder_.split(std::move(next_first));
  }
  return first;
}

Result<StateId> SchemaCompiler::object(const Object& schema, const std::string& path) {
  TRY(const std::vector<Property> properties, properties_of(schema, path));
  const std::optional<RuleId> additional = additional_rule(schema, path);
  const bool is_any = properties.empty() && additional == rules_.any_value();
  if (is_any) return builder_.call(rules_.any_object(), builder_.done());
  return builder_.literal("{", rules_.line_blank(members(properties, additional)));
}

}  // namespace

Result<RuleId> add_schema(GrammarBuilder& builder, JsonRules& rules, const json::value& schema) {
  return SchemaCompiler(builder, rules, schema).compile();
}

}  // namespace winnow
