#include "cli/flags.h"

#include <gtest/gtest.h>

namespace winnow {
namespace {

struct Parsed {
  std::string text;
  std::optional<std::string> maybe;
  std::vector<std::string> texts;
  int64_t integer = 7;
  std::vector<int64_t> integers;
  std::optional<uint64_t> seed;
  float number = 0.5f;
  std::string choice = "a";
  bool toggle = false;
  std::string error;  // empty if parsing succeeded
  bool help = false;
};

Parsed parse(const std::vector<std::string>& args) {
  Parsed parsed;
  FlagSet flags("verb", "Does a thing.", "Example");
  flags.text("-x,--text", parsed.text, "a text", "WINNOW_TEST_TEXT");
  flags.text("--maybe", parsed.maybe, "a text");
  flags.texts("--stop", parsed.texts, "texts");
  flags.integer("-n,--count", parsed.integer, {-1, 100}, "a count", "WINNOW_TEST_COUNT");
  flags.integers("-l,--list", parsed.integers, {0, 10}, "a list");
  flags.seed("--seed", parsed.seed, "a seed");
  flags.number("--temp", parsed.number, {0, 2}, "a number");
  flags.choice("--kind", parsed.choice, {"a", "b"}, "a kind");
  flags.toggle("--json", parsed.toggle, "a switch");
  Result<FlagSet::Outcome> outcome = flags.parse(args);
  if (!outcome.ok()) {
    EXPECT_EQ(outcome.error().code, ErrorCode::kInvalidArgument);
    parsed.error = outcome.error().message;
  } else {
    parsed.help = *outcome == FlagSet::Outcome::kHelp;
  }
  return parsed;
}

TEST(Flags, EveryKindOfValueIsRead) {
  const Parsed parsed = parse({"--text", "t", "--maybe", "", "-n", "-1", "-l", "0,5,10", "--seed",
                               "18446744073709551615", "--temp", "1e-1", "--kind", "b", "--json"});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.text, "t");
  EXPECT_EQ(parsed.maybe, "");
  EXPECT_EQ(parsed.integer, -1);
  EXPECT_EQ(parsed.integers, (std::vector<int64_t>{0, 5, 10}));
  EXPECT_EQ(parsed.seed, UINT64_MAX);
  EXPECT_FLOAT_EQ(parsed.number, 0.1f);
  EXPECT_EQ(parsed.choice, "b");
  EXPECT_TRUE(parsed.toggle);
}

TEST(Flags, AFlagThatIsNotGivenLeavesItsTargetAlone) {
  const Parsed parsed = parse({});
  EXPECT_EQ(parsed.error, "");
  EXPECT_EQ(parsed.integer, 7);
  EXPECT_EQ(parsed.maybe, std::nullopt);
  EXPECT_EQ(parsed.seed, std::nullopt);
  EXPECT_FALSE(parsed.toggle);
}

TEST(Flags, TextsAreTakenAsTheyAre) {
  const std::vector<std::string> odd = {"[a,b]", "-x", "--json", "",   "a b", "\"q\"",
                                        "%s",    "{}", "#c",     "\n", "a=b", "'"};
  for (const std::string& text : odd) {
    SCOPED_TRACE(text);
    const Parsed parsed = parse({"--stop", text, "--stop", "end", "-x", text});
    EXPECT_EQ(parsed.error, "");
    EXPECT_EQ(parsed.texts, (std::vector<std::string>{text, "end"}));
    EXPECT_EQ(parsed.text, text);
  }
}

TEST(Flags, RefusalsNameTheFlagTheExpectedAndTheFound) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"-n", "abc"},
       "--count (or WINNOW_TEST_COUNT): expected a whole number from -1 to 100, found 'abc'"},
      {{"-n", "-2"}, "found '-2'"},
      {{"-n", "101"}, "found '101'"},
      {{"-n", "1.5"}, "found '1.5'"},
      {{"-n", " 1"}, "found ' 1'"},
      {{"-n", ""}, "found ''"},
      {{"-n", "99999999999999999999"}, "found '99999999999999999999'"},
      {{"-l", "1,,2"}, "--list: expected a whole number from 0 to 10, found ''"},
      {{"-l", "1,11"}, "found '11'"},
      {{"--seed", "-1"},
       "--seed: expected a whole number from 0 to 18446744073709551615, found '-1'"},
      {{"--temp", "nan"}, "--temp: expected a number from 0 to 2, found 'nan'"},
      {{"--temp", "inf"}, "found 'inf'"},
      {{"--temp", "2.5"}, "found '2.5'"},
      {{"--temp", "0,5"}, "found '0,5'"},
      {{"--kind", "c"}, "--kind: expected one of a, b, found 'c'"},
      {{"--unknown"}, "unexpected argument '--unknown'"},
      {{"stray"}, "unexpected argument 'stray'"},
      {{"-n"}, "--count"},
      {{"-x", "a", "-x", "b"}, "--text"},
      {{"-n", "\xff"}, "found '\\xFF'"},
  };
  for (const auto& [args, message] : cases) {
    const Parsed parsed = parse(args);
    EXPECT_NE(parsed.error.find(message), std::string::npos) << message << " / " << parsed.error;
  }
}

TEST(Flags, TheEnvironmentStandsInForAFlagAndTheFlagWins) {
  setenv("WINNOW_TEST_COUNT", "42", 1);
  EXPECT_EQ(parse({}).integer, 42);
  EXPECT_EQ(parse({"-n", "3"}).integer, 3);
  setenv("WINNOW_TEST_COUNT", "x", 1);
  EXPECT_NE(parse({}).error.find("WINNOW_TEST_COUNT"), std::string::npos);
  unsetenv("WINNOW_TEST_COUNT");
}

TEST(Flags, HelpWinsOverMissingAndNamesEveryFlag) {
  EXPECT_TRUE(parse({"--help"}).help);
  EXPECT_TRUE(parse({"-h"}).help);
  std::string value;
  FlagSet flags("verb", "Does a thing.", "Example: winnow verb -m FILE");
  flags.text("-m,--model", value, "the model file");
  flags.require_last();
  EXPECT_EQ(flags.parse(std::vector<std::string>{"--help"}).value(), FlagSet::Outcome::kHelp);
  EXPECT_FALSE(flags.parse({}).ok());
  EXPECT_NE(flags.help().find("--model"), std::string::npos);
  EXPECT_NE(flags.help().find("Example"), std::string::npos);
}

}  // namespace
}  // namespace winnow
