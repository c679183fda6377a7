// JSON Schema as a grammar: every text of the grammar is JSON that satisfies the schema. The other
// way round it is narrower:
// - properties come in the schema's order, then required ones that it does not describe, then
//   additional ones;
// - without additionalProperties, an object that names properties has no others;
// - without items, an array has no items after those of prefixItems, unless minItems asks for them;
// - oneOf is read as anyOf; without type, the keywords given tell it;
// - names of additional properties have no escapes; enum and const are written in one way;
// - blanks are few (json_rules.h) and numbers have at most kMaxDigits digits.
//
// Known: type, properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// enum, const, anyOf, oneOf, allOf (schema_merge.h), $ref within the schema (recursive ones too),
// $defs, definitions, minLength, maxLength, pattern (pattern.h; not beside a length), format (date,
// time, date-time, uuid, ipv4, email), minimum, maximum, exclusiveMinimum, exclusiveMaximum (whole
// bounds, unless the type is integer). Annotations say nothing. The rest is refused by name.
#pragma once

#include <boost/json/value.hpp>

#include "base/result.h"
#include "constrain/grammar.h"
#include "constrain/json_rules.h"

namespace winnow {

inline constexpr size_t kMaxSchemaDepth = 64;       // JSON values within each other
inline constexpr size_t kMaxSchemaValues = 20'000;  // JSON values in a schema
inline constexpr size_t kMaxObjectProperties = 256;

// A rule for JSON that satisfies `schema`; references may lead anywhere within `schema`.
// kInvalidArgument or kUnsupported, naming the place and the keyword.
Result<RuleId> add_schema(GrammarBuilder& builder, JsonRules& rules,
                          const boost::json::value& schema);

}  // namespace winnow
