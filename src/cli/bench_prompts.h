// BenchPrompts: prompts of a chosen length for a server under load, made of a text cut up and mixed
// again, so that no two share more than they are meant to.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "cli/length_mix.h"
#include "sampling/random_stream.h"

namespace winnow {

class BenchPrompts {
 public:
  // Lists of token ids, of exact length, from the `ids` of a text. The first `shared_tokens` of
  // every prompt are the same. Requires ids.
  BenchPrompts(std::vector<TokenId> ids, int64_t shared_tokens, uint64_t seed);
  // Text for servers that do not tell token ids; three words count as four tokens, so lengths are
  // estimates. Requires a word in `text`.
  BenchPrompts(std::string_view text, int64_t shared_tokens, uint64_t seed);

  bool exact() const { return std::holds_alternative<std::vector<TokenId>>(units_); }
  // The "prompt" of a completion request. Requires num_tokens >= 1.
  boost::json::value next(int64_t num_tokens);

 private:
  using Indices = std::vector<size_t>;  // of units

  size_t num_units() const;
  void append_mixed(Indices& indices, size_t count);
  boost::json::value rendered(const Indices& indices) const;

  std::variant<std::vector<TokenId>, std::vector<std::string>> units_;
  RandomStream random_;
  Indices shared_;
};

// The body of a streamed completion that takes the likeliest token and does not end by itself.
std::string completion_body(std::string_view model, boost::json::value prompt, int64_t max_tokens);

}  // namespace winnow
