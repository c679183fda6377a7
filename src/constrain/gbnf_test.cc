#include "constrain/gbnf.h"

#include <gtest/gtest.h>

#include <string>

#include "support/grammar_checks.h"

namespace winnow {
namespace {

using test::accepts;

Result<Grammar> gbnf_grammar(std::string_view text) {
  GrammarBuilder builder;
  TRY(const RuleId root, add_gbnf(builder, text));
  return std::move(builder).finish(root);
}

struct Case {
  std::string grammar;
  std::vector<std::string> in;
  std::vector<std::string> out;
};

TEST(Gbnf, TakesTheTextsOfAGrammarAndNoOthers) {
  const std::vector<Case> cases = {
      {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno"}},
      {"root ::= [a-c]+ [^a-z\\n]? \"\\x41\\u00e9\\\"\"",
       {"abA\u00e9\"", "c\u00fcA\u00e9\""},
       {"A", "dA"}},
      {"# numbers\nroot  ::= num (\",\" num)* # all\nnum ::= \"-\"? [0-9]{1,3}\n",
       {"1", "-12,345"},
       {"", "1234", "1,", "--1"}},
      {"root ::=\n  \"(\" (\n    root\n    | \"x\" # here\n  )? \")\"",
       {"()", "(x)", "((x))"},
       {"x", "(xx)"}},
      {"root ::= a |\n b\na ::= \"a\"{2}\nb ::= \"b\"{2,}",
       {"aa", "bb", "bbbb"},
       {"a", "aaa", "b"}},
      {"root ::= .", {"x", "\u00e9", "\n"}, {"", "xx"}},
      {"root ::= [\\]\\-x] \"\"", {"]", "-", "x"}, {"\\"}},
      {"root ::= c{1,2}\r\nc ::= [^\"\\\\\\x7F\\x00-\\x1F] | [\\\\] ([\"\\\\bn] | \"u\" "
       "[0-9a-f]{4})\r\n",
       {"a", "\\\\", "\\u00e9\u00e9"},
       {"", "\"", "\n", "\\", "abc"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.grammar);
    const auto grammar = gbnf_grammar(one.grammar);
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    for (const std::string& text : one.in) EXPECT_TRUE(accepts(*grammar, text)) << text;
    for (const std::string& text : one.out) EXPECT_FALSE(accepts(*grammar, text)) << text;
  }
}

TEST(Gbnf, RulesMayBeManyAndHaveManyAlternatives) {
  std::string numbers = "root ::= \"x\"", chain = "root ::= r0\n";
  for (int i = 0; i < 25000; ++i) numbers += " | \"" + std::to_string(i) + "\"";
  const auto rule = [](int i) { return "r" + std::to_string(i); };
  for (int i = 0; i < 9000; ++i) chain += rule(i) + " ::= " + rule(i + 1) + "? \"a\"\n";
  for (const std::string& text : {numbers, chain + rule(9000) + " ::= \"b\""}) {
    const auto grammar = gbnf_grammar(text);
    ASSERT_TRUE(grammar.ok()) << grammar.error().message;
    EXPECT_TRUE(accepts(*grammar, text == numbers ? "7" : "a"));
  }
}

TEST(Gbnf, WhatIsWrongIsNamedWithItsPlace) {
  const auto expect = [](std::string_view text, std::string_view part) {
    const auto grammar = gbnf_grammar(text);
    ASSERT_FALSE(grammar.ok()) << text;
    EXPECT_NE(grammar.error().message.find(part), std::string::npos) << grammar.error().message;
  };
  expect("", "'root'");
  expect("a ::= \"x\"", "'root'");
  expect("root ::= \"x\"\n\nroot ::= other", "grammar: line 3, column 5: ");
  expect("root ::=\n other", "line 2, column 2: rule 'other' is not defined");
  expect("root ::= \"\u00e9\u00e9\" )", "line 1, column 15: ");
  expect("root ::= a\na ::= (\"x\"? a){2}",
         "line 1, column 10: expected a character before rule 'a'");
  expect("root := \"x\"", "'::='");
  expect("root ::= \"x", "end of a literal");
  expect("root ::= [a", "end of a literal or class");
  expect("root ::= (\"x\"", "')'");
  expect("root ::= \"x\")", "end of the line");
  expect("root ::= \"\\q\"", "escape");
  expect("root ::= \"\\ud800\"", "Unicode");
  expect("root ::= [z-a]", "in order");
  expect("root ::= \"x\"{3,2}", "in order");
  expect("root ::= \"x\"{9999}", "2000");
  expect("root ::= \"x\"**", "second repetition");
  expect("root ::= *", "a literal");
  expect("root ::= <think>", "tokens are not supported");
  expect("root ::= root \"x\" | \"y\"", "rule 'root' leads back to itself");
  expect("root ::= \"x\" root", "found none");
  expect("root ::= " + std::string(1000, '(') + "\"x\"" + std::string(1000, ')'), "this deep");
  expect("root ::= \"\xff\"", "UTF-8");
}

}  // namespace
}  // namespace winnow
