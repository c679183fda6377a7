#include "constrain/grammar_constraint.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "base/utf8.h"
#include "constrain/gbnf.h"
#include "support/golden.h"
#include "support/grammar_checks.h"
#include "support/json_checker.h"
#include "support/tiny_tokenizer.h"

namespace winnow {
namespace {

namespace json = boost::json;

std::shared_ptr<const Grammar> shared_grammar(const json::value& schema) {
  auto grammar = test::schema_grammar(schema);
  EXPECT_TRUE(grammar.ok()) << grammar.error().message;
  return std::make_shared<const Grammar>(*std::move(grammar));
}

std::vector<TokenId> allowed_tokens(GrammarConstraint& constraint, int32_t num_tokens) {
  std::vector<float> logits(static_cast<size_t>(num_tokens) + 3, 0.0F);
  constraint.mask(logits);
  std::vector<TokenId> allowed;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isfinite(logits[i])) allowed.push_back(static_cast<TokenId>(i));
  }
  return allowed;
}

class GrammarConstraintTest : public testing::Test {
 protected:
  GrammarConstraint constraint_for(const json::value& schema) const {
    const auto ends = model_.tokenizer->end_tokens();
    return {shared_grammar(schema), table_, {ends.begin(), ends.end()}};
  }
  bool is_end(TokenId id) const {
    const auto ends = model_.tokenizer->end_tokens();
    return std::find(ends.begin(), ends.end(), id) != ends.end();
  }

  // One of the allowed tokens that end or close something.
  std::optional<TokenId> closing_token(const std::vector<TokenId>& allowed,
                                       std::mt19937& rng) const {
    std::vector<TokenId> closing;
    for (const TokenId id : allowed) {
      const std::string_view piece = model_.tokenizer->piece(id);
      if (is_end(id)) return id;
      if (piece == "]" || piece == "}" || piece == "\"") closing.push_back(id);
    }
    if (closing.empty()) return std::nullopt;
    return closing[rng() % closing.size()];
  }

  test::TinyTokenizer model_ = test::tiny_tokenizer("qwen2-bias");
  std::shared_ptr<const TokenTable> table_ =
      std::make_shared<const TokenTable>(*model_.tokenizer, std::span<const std::string>());
};

TEST_F(GrammarConstraintTest, RandomTokensUnderTheMaskAlwaysSatisfyTheSchema) {
  std::mt19937 rng(20260203);
  int num_walks = 0, num_ended = 0;
  const json::value golden = test::load_golden("schema_cases.json");
  for (const json::value& one : golden.at("cases").as_array()) {
    SCOPED_TRACE(std::string(one.at("name").as_string()));
    const json::value& schema = one.at("schema");
    const test::JsonChecker checker(schema);
    for (int walk = 0; walk < 20; ++walk, ++num_walks) {
      GrammarConstraint constraint = constraint_for(schema);
      std::string text;
      bool ended = false;
      for (int step = 0; step < 500 && !ended; ++step) {
        const auto allowed = allowed_tokens(constraint, table_->num_tokens());
        ASSERT_FALSE(allowed.empty()) << text;
        ASSERT_EQ(is_end(allowed.back()) || is_end(allowed.front()), constraint.may_end()) << text;
        TokenId token = allowed[rng() % allowed.size()];
        if (step > 60) token = closing_token(allowed, rng).value_or(token);
        constraint.accept(token);
        ended = is_end(token);
        if (ended) break;
        ASSERT_FALSE(model_.tokenizer->is_control(token));
        text += model_.tokenizer->piece(token);
      }
      ASSERT_EQ(valid_utf8_prefix(text), text.size()) << text;
      if (!ended) continue;
      ++num_ended;
      boost::system::error_code error;
      json::parse_options options;
      options.max_depth = 300;
      const json::value value = json::parse(text, error, {}, options);
      ASSERT_FALSE(error) << text << ": " << error.message();
      EXPECT_TRUE(checker.accepts(value)) << text;
    }
  }
  EXPECT_GT(num_ended, num_walks * 9 / 10);
}

TEST_F(GrammarConstraintTest, ATokenIsAllowedIfAndOnlyIfItsBytesMayFollow) {
  const json::value schema = json::parse(
      R"({"properties":{"a":{"type":"string","maxLength":3},"b":{"enum":["the","then",12]}}})");
  const auto grammar = shared_grammar(schema);
  const std::string text = R"({"a": "the","b":"then"})";
  for (size_t length = 0; length <= text.size(); ++length) {
    GrammarConstraint constraint = constraint_for(schema);
    GrammarMatcher matcher(*grammar);
    ConfigId config = matcher.start();
    for (const TokenId id : model_.tokenizer->encode(text.substr(0, length))) {
      constraint.accept(id);
      for (const char byte : model_.tokenizer->piece(id)) {
        config = matcher.step(config, static_cast<uint8_t>(byte));
      }
    }
    ASSERT_NE(config, kDeadConfig);
    const auto allowed = allowed_tokens(constraint, table_->num_tokens());
    for (TokenId id = 0; id < table_->num_tokens(); ++id) {
      ConfigId after = config;
      for (const char byte : model_.tokenizer->piece(id)) {
        if (after != kDeadConfig) after = matcher.step(after, static_cast<uint8_t>(byte));
      }
      const bool spelt = after != kDeadConfig && !model_.tokenizer->piece(id).empty() &&
                         !model_.tokenizer->is_control(id);
      const bool expected = is_end(id) ? matcher.accepts(config) : spelt;
      EXPECT_EQ(std::find(allowed.begin(), allowed.end(), id) != allowed.end(), expected)
          << text.substr(0, length) << " then " << model_.tokenizer->piece(id);
    }
  }
}

TEST_F(GrammarConstraintTest, OnlyEndTokensFollowACompleteAnswer) {
  GrammarConstraint constraint = constraint_for(json::parse(R"({"const":"a"})"));
  for (const TokenId id : model_.tokenizer->encode("\"a\"")) constraint.accept(id);
  for (int i = 0; i < 2; ++i) {
    for (const TokenId id : allowed_tokens(constraint, table_->num_tokens())) {
      EXPECT_TRUE(is_end(id));
    }
    constraint.accept(model_.tokenizer->end_tokens().front());
  }
}

std::shared_ptr<const Grammar> grammar_of_gbnf(const std::string& text) {
  GrammarBuilder builder;
  const auto root = add_gbnf(builder, text);
  EXPECT_TRUE(root.ok()) << root.error().message;
  auto grammar = std::move(builder).finish(*root);
  EXPECT_TRUE(grammar.ok()) << grammar.error().message;
  return std::make_shared<const Grammar>(*std::move(grammar));
}

std::string times(int count, const std::function<std::string(int)>& part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part(i);
  return text;
}

// Texts that can be read in very many ways, each for another reason.
std::vector<std::string> hostile_grammars() {
  const auto number = [](int i) { return std::to_string(i); };
  const std::string empties = times(20000, [](int) { return "|"; });
  const std::string callers = times(1500, [&](int i) { return "| b \"" + number(i) + "\" "; });
  const std::string letters = times(3000, [&](int i) { return "| [a-z] \"" + number(i) + "\" "; });
  const std::string scattered = times(8000, [](int i) {
    char code[16];
    std::snprintf(code, sizeof(code), "\\u%04x", 0x4E00 + 2 * i);
    return std::string(code);
  });
  return {
      "root ::= (a | a \"x\")+\na ::= b b b b\nb ::= (\"a\" " + empties + ")",
      "root ::= (\"x\" " + callers + ")+\nb ::= [a-z]? \"a\" (\"\" " + empties + "| \"a\")",
      "root ::= (\"x\" " + letters + ")+",
      "root ::= a{2000}\na ::= \"a\"? \"a\"? [ab]? [a-c]? [a-d]?",
      "root ::= a*\na ::= b* b*\nb ::= c? c? c? \"x\"\nc ::= [a-z] | [a-y] | \"a\" c? | [b-z] c? "
      "c?",
      "root ::= ([" + scattered + "] | [" + scattered + "] \"a\" | [a-z]+)*",
      "root ::= e\ne ::= t (\"+\" t)* | t\nt ::= f (\"*\" f)* | f\nf ::= \"(\" e \")\" | [a-z]+ | "
      "[a-z]* \"a\" | \"(\" f",
  };
}

TEST_F(GrammarConstraintTest, NoGrammarMakesAStepCostMoreThanTheLimit) {
  const auto ends = model_.tokenizer->end_tokens();
  std::mt19937 rng(5);
  for (const std::string& text : hostile_grammars()) {
    SCOPED_TRACE(text.substr(0, 60));
    GrammarConstraint constraint(grammar_of_gbnf(text), table_, {ends.begin(), ends.end()});
    int64_t before = constraint.work();
    for (int i = 0; i < 40; ++i) {
      const auto allowed = allowed_tokens(constraint, table_->num_tokens());
      ASSERT_FALSE(allowed.empty());
      const TokenId token = allowed[rng() % allowed.size()];
      constraint.accept(token);
      if (is_end(token)) break;
      // Steps that exceed the limit: the mask's last, its single bytes, and the token's own.
      const int64_t after = constraint.work();
      EXPECT_LE(after - before, GrammarConstraint::kMaxMaskWork + 3 * GrammarMatcher::kMaxStepWork);
      before = after;
    }
  }
}

TEST_F(GrammarConstraintTest, APatternMadeToBeSlowStillHasATokenForEveryStep) {
  const json::value schema = json::parse(
      R"({"type":"string","pattern":"([ab]|[bc]|[a-d])*([ab]{3,200}|c){5,900}x[^q]{40,900}$"})");
  GrammarConstraint constraint = constraint_for(schema);
  std::mt19937 rng(7);
  for (int i = 0; i < 30; ++i) {
    const auto allowed = allowed_tokens(constraint, table_->num_tokens());
    ASSERT_FALSE(allowed.empty());
    constraint.accept(allowed[rng() % allowed.size()]);
  }
}

}  // namespace
}  // namespace winnow
