#include "constrain/schema_grammar.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <string>

#include "support/golden.h"
#include "support/grammar_checks.h"

namespace winnow {
namespace {

using test::accepts;
using test::schema_grammar;

namespace json = boost::json;

Result<Grammar> grammar_of(const std::string& schema) {
  return schema_grammar(json::parse(schema));
}

std::string error_of(const std::string& schema) {
  const auto grammar = grammar_of(schema);
  return grammar.ok() ? "accepted" : grammar.error().message;
}

#define EXPECT_REFUSED(schema, part) \
  EXPECT_NE(error_of(schema).find(part), std::string::npos) << error_of(schema)

TEST(SchemaGrammar, TakesWhatAValidatorTakesAndRefusesWhatItRefuses) {
  const json::value golden = test::load_golden("schema_cases.json");
  for (const json::value& one : golden.at("cases").as_array()) {
    SCOPED_TRACE(std::string(one.at("name").as_string()));
    const auto grammar = schema_grammar(one.at("schema"));
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    for (const json::value& text : one.at("valid").as_array()) {
      EXPECT_TRUE(accepts(*grammar, text.as_string())) << text;
    }
    for (const char* list : {"invalid", "narrow"}) {
      for (const json::value& text : one.at(list).as_array()) {
        EXPECT_FALSE(accepts(*grammar, text.as_string())) << text;
      }
    }
  }
}

TEST(SchemaGrammar, AnUnknownKeywordIsRefusedByNameAndPlace) {
  EXPECT_REFUSED(R"({"properties":{"a":{"type":"array","uniqueItems":true}}})",
                 "schema at '#/properties/a': 'uniqueItems' is not supported");
  for (const char* keyword : {"not", "if", "patternProperties", "contains", "multipleOf",
                              "minProperties", "dependentRequired", "$dynamicRef"}) {
    EXPECT_REFUSED(std::string("{\"") + keyword + "\":{}}", keyword);
  }
}

TEST(SchemaGrammar, KeywordsThatCannotBeEnforcedTogetherAreRefusedByName) {
  EXPECT_REFUSED(R"({"type":"string","pattern":"a","maxLength":3})", "'maxLength'");
  EXPECT_REFUSED(R"({"anyOf":[{}],"properties":{}})", "'properties' is not supported beside");
  EXPECT_REFUSED(R"({"$ref":"#/$defs/a","type":"string","$defs":{"a":{}}})", "'type'");
  EXPECT_REFUSED(R"({"enum":["a"],"minLength":2})", "'minLength'");
  EXPECT_REFUSED(R"({"type":"number","minimum":0.5})", "'minimum'");
  EXPECT_REFUSED(R"({"allOf":[{"type":"string"},{"type":"null"}]})", "gives 'type' in two ways");
  EXPECT_REFUSED(R"({"type":"string","format":"hostname"})", "format 'hostname'");
}

TEST(SchemaGrammar, WrongFormsAreRefusedByName) {
  EXPECT_REFUSED("3", "expected an object or a boolean");
  EXPECT_REFUSED(R"({"type":"text"})", "'type'");
  EXPECT_REFUSED(R"({"type":[]})", "'type'");
  EXPECT_REFUSED(R"({"anyOf":[]})", "'anyOf'");
  EXPECT_REFUSED(R"({"enum":[]})", "'enum'");
  EXPECT_REFUSED(R"({"minItems":-1})", "'minItems'");
  EXPECT_REFUSED(R"({"minItems":1.5})", "'minItems'");
  EXPECT_REFUSED(R"({"maxLength":"3"})", "'maxLength'");
  EXPECT_REFUSED(R"({"required":"a"})", "'required'");
  EXPECT_REFUSED(R"({"properties":[]})", "'properties'");
  EXPECT_REFUSED(R"({"items":[{}]})", "prefixItems");
  EXPECT_REFUSED(R"({"required":["b"],"properties":{},"additionalProperties":false})",
                 "'required'");
  EXPECT_REFUSED(R"({"allOf":[]})", "allOf");
}

TEST(SchemaGrammar, ReferencesThatLeadNowhereOrBackAreRefused) {
  EXPECT_REFUSED(R"({"$ref":"#/$defs/none"})", "leads nowhere");
  EXPECT_REFUSED(R"({"$ref":"https://example.org/x"})", "'$ref'");
  EXPECT_REFUSED(R"({"$ref":"#"})", "leads back to itself");
  EXPECT_REFUSED(R"({"anyOf":[{"type":"null"},{"$ref":"#"}]})", "leads back to itself");
  EXPECT_REFUSED(
      R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}})",
      "leads back to itself");
}

TEST(SchemaGrammar, ASchemaThatNoFiniteTextSatisfiesIsRefused) {
  EXPECT_REFUSED("false", "found none");
  EXPECT_REFUSED(R"({"type":"integer","minimum":3,"maximum":2})", "found none");
  EXPECT_REFUSED(R"({"type":"object","properties":{"a":false},"required":["a"]})", "found none");
  EXPECT_REFUSED(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                 "found none");
}

TEST(SchemaGrammar, PatternsOutsideTheSubsetAreRefusedByName) {
  const auto with_pattern = [](const std::string& pattern) {
    return json::serialize(json::object{{"type", "string"}, {"pattern", pattern}});
  };
  for (const char* pattern :
       {"(?=a)", "(?<n>a)", "\\1", "\\b", "\\p{L}", "a^", "(^a)", "a$b", "a**"}) {
    EXPECT_REFUSED(with_pattern(pattern), "is not supported");
  }
  for (const char* pattern : {"(", ")", "[a", "[z-a]", "*", "a{", "a{2", "a{3,2}", "\\", "\\u12"}) {
    EXPECT_REFUSED(with_pattern(pattern), "expected");
  }
  EXPECT_REFUSED(with_pattern("a{2000}"), "1000");
  EXPECT_REFUSED(with_pattern(std::string(5000, 'a')), "4096");
}

TEST(SchemaGrammar, DepthAndSizeAreLimitedNotTheStack) {
  std::string nested_groups(4000, '(');
  EXPECT_REFUSED(json::serialize(json::object{{"pattern", nested_groups}}), "is not supported");

  json::value deep = json::object{{"type", "null"}};
  for (int i = 0; i < 100; ++i) deep = json::object{{"items", std::move(deep)}};
  EXPECT_FALSE(schema_grammar(deep).ok());

  json::array many;
  for (int i = 0; i < 30'000; ++i) many.emplace_back(i);
  EXPECT_FALSE(schema_grammar(json::object{{"enum", std::move(many)}}).ok());

  EXPECT_REFUSED(json::serialize(json::object{{"const", std::string(200'000, 'x')}}), "states");

  // Each reference doubles what is below it; every schema is still compiled once.
  json::object definitions;
  for (int i = 0; i < 40; ++i) {
    const json::object next{{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
    definitions["d" + std::to_string(i)] = json::object{
        {"anyOf", json::array{next, next, json::object{{"allOf", json::array{next, next}}}}}};
  }
  definitions["d40"] = json::object{{"type", "null"}};
  const auto doubled = schema_grammar(json::object{{"$ref", "#/$defs/d0"}, {"$defs", definitions}});
  ASSERT_TRUE(doubled.ok()) << doubled.error().message;
  EXPECT_TRUE(accepts(*doubled, "null"));
}

TEST(SchemaGrammar, ManyPropertiesAndLiteralsAreAllFound) {
  json::object properties;
  json::array names;
  for (int i = 0; i < 256; ++i) {
    properties["property_" + std::to_string(i)] = json::object{{"type", "null"}};
    names.emplace_back("value_" + std::to_string(i * 7));
  }
  const auto grammar = schema_grammar(json::object{{"properties", properties}});
  ASSERT_TRUE(grammar.ok()) << grammar.error().message;
  EXPECT_TRUE(accepts(*grammar, R"({"property_0":null,"property_255":null})"));
  EXPECT_FALSE(accepts(*grammar, R"({"property_256":null})"));
  const auto choice = schema_grammar(json::object{{"enum", names}});
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(accepts(*choice, "\"value_1785\""));
  EXPECT_FALSE(accepts(*choice, "\"value_1786\""));
}

TEST(SchemaGrammar, ValuesWithinEachOtherEndInTime) {
  const auto grammar = grammar_of("true");
  ASSERT_TRUE(grammar.ok());
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(accepts(*grammar, nested(64)));
  EXPECT_FALSE(accepts(*grammar, nested(1000)));

  // Whatever was opened can be closed.
  GrammarMatcher matcher(*grammar);
  ConfigId config = matcher.start();
  size_t depth = 0;
  for (ConfigId next = config; next != kDeadConfig; next = matcher.step(config, '['))
    config = next, ++depth;
  std::string closing = "0";
  for (const char byte : closing) {
    const ConfigId next = matcher.step(config, static_cast<uint8_t>(byte));
    if (next != kDeadConfig) config = next;
  }
  for (size_t i = 1; i < depth; ++i) {
    config = matcher.step(config, ']');
    ASSERT_NE(config, kDeadConfig);
  }
  EXPECT_TRUE(matcher.accepts(config));
}

TEST(SchemaGrammar, BlanksAreBounded) {
  const auto grammar = grammar_of(R"({"type":"object"})");
  ASSERT_TRUE(grammar.ok());
  EXPECT_TRUE(accepts(*grammar, "{\n" + std::string(20, ' ') + "\"a\": 1\n}"));
  EXPECT_FALSE(accepts(*grammar, "{\n" + std::string(21, ' ') + "\"a\": 1\n}"));
  for (const char* text : {"{\n\n}", "{  }", "{\"a\" :1}", "{\"a\":  1}", "{} ", "\n{}", "{\t}"}) {
    EXPECT_FALSE(accepts(*grammar, text)) << text;
  }
}

}  // namespace
}  // namespace winnow
