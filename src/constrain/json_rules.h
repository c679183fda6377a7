// JsonRules: JSON as grammar states. Blanks are few on purpose, because a model that may write them
// without end does so: where JSON is broken into lines, at most one blank, or a line break and an
// indent of at most kMaxIndent; after a colon, at most one blank; none elsewhere.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "constrain/grammar.h"
#include "constrain/text_grammar.h"

namespace winnow {

inline constexpr int32_t kMaxIndent = 20;
// Digits before and after the decimal point.
inline constexpr int kMaxDigits = 16;

class JsonRules {
 public:
  explicit JsonRules(GrammarBuilder& builder) : builder_(builder) {}

  RuleId any_value();
  RuleId any_object();
  RuleId any_array();
  RuleId any_number();
  RuleId any_integer();

  // A string of min to max characters; an escape, or a pair of escaped surrogates, is one.
  StateId string(int32_t min, int32_t max, StateId next);
  // A string that is none of `names` and has no escapes in it.
  StateId string_except(const std::vector<std::string>& names, StateId next);
  // One character inside a string, written as it is if it may be and with its only or shortest
  // escape otherwise.
  StateId character_of(const CharacterSet& set, StateId next);
  RuleId string_character();
  StateId digits(int min, int max, StateId next);

  // The blanks described above, then `next`.
  StateId line_blank(StateId next);
  StateId colon(StateId next);

 private:
  RuleId plain_character();
  RuleId indent_blank();
  StateId escape_sequence(StateId next);
  StateId fraction_and_exponent(StateId next);
  StateId whole_number(StateId next);

  GrammarBuilder& builder_;
  std::optional<RuleId> any_value_, any_object_, any_array_, any_number_, any_integer_;
  std::optional<RuleId> string_character_, plain_character_, indent_blank_;
};

// `text` as the inside of a JSON string.
std::string json_escaped(std::string_view text);

// All code points that stand in a JSON string as they are.
const CharacterSet& plain_characters();

}  // namespace winnow
