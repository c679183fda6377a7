// What a grammar takes.
#pragma once

#include <boost/json.hpp>
#include <string_view>
#include <utility>

#include "constrain/grammar_matcher.h"
#include "constrain/schema_grammar.h"

namespace winnow::test {

inline bool accepts(const Grammar& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  ConfigId config = matcher.start();
  for (const char byte : text) {
    if (config == kDeadConfig) return false;
    config = matcher.step(config, static_cast<uint8_t>(byte));
  }
  return config != kDeadConfig && matcher.accepts(config);
}

inline Result<Grammar> schema_grammar(const boost::json::value& schema) {
  GrammarBuilder builder;
  JsonRules rules(builder);
  TRY(const RuleId root, add_schema(builder, rules, schema));
  return std::move(builder).finish(root);
}

}  // namespace winnow::test
