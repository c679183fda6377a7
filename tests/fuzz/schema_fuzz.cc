// Links: constrain
// Any bytes as a JSON schema: refused, or a grammar under which some token is always allowed, that
// takes no text but JSON, and that ends once it must.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/utf8.h"
#include "constrain/grammar_matcher.h"
#include "constrain/schema_grammar.h"

namespace {

namespace json = boost::json;

// Bytes that may follow, the preferred one first: closing what is open ends a text soonest.
int choose_byte(winnow::GrammarMatcher& matcher, winnow::ConfigId config, uint8_t preferred) {
  for (int i = 0; i < 256; ++i) {
    const auto byte = static_cast<uint8_t>(preferred + i);
    if (matcher.step(config, byte) != winnow::kDeadConfig) return byte;
  }
  return -1;
}

void walk(const winnow::Grammar& grammar, const uint8_t* data, size_t size) {
  winnow::GrammarMatcher matcher(grammar);
  winnow::ConfigId config = matcher.start();
  std::string text;
  for (size_t i = 0; i < 400 && matcher.work() < 300'000; ++i) {
    CHECK(config != winnow::kDeadConfig);
    const bool early = i < size && i < 100;
    const uint8_t preferred = early ? data[size - 1 - i] : std::string_view("\"]}0")[i % 4];
    const int byte = matcher.is_complete(config) ? -1 : choose_byte(matcher, config, preferred);
    if (byte < 0 || (!early && matcher.accepts(config))) break;
    config = matcher.step(config, static_cast<uint8_t>(byte));
    text += static_cast<char>(byte);
    if (i % 64 == 63) config = matcher.shrink(config);
  }
  CHECK(config != winnow::kDeadConfig);
  if (!matcher.accepts(config)) return;
  CHECK(winnow::valid_utf8_prefix(text) == text.size());
  json::parse_options options;
  options.max_depth = 2 * winnow::kMaxFrames;
  boost::system::error_code error;
  const json::value value = json::parse(text, error, {}, options);
  CHECK(!error);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  json::parse_options options;
  options.max_depth = 100;
  boost::system::error_code error;
  const size_t schema_size = size - size / 4;
  const json::value schema =
      json::parse({reinterpret_cast<const char*>(data), schema_size}, error, {}, options);
  if (error) return 0;
  winnow::GrammarBuilder builder;
  winnow::JsonRules rules(builder);
  const auto root = winnow::add_schema(builder, rules, schema);
  if (!root.ok()) return 0;
  const auto grammar = std::move(builder).finish(*root);
  if (!grammar.ok()) return 0;
  walk(*grammar, data + schema_size, size - schema_size);
  return 0;
}
