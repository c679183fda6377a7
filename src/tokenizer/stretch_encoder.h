// StretchEncoder: what the tokenizer families have of their own: the ids of a stretch of text
// between special pieces.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "tokenizer/merge.h"
#include "tokenizer/pair_cache.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/word_cache.h"

namespace winnow {

// State of one call of encode(), over all its stretches.
struct EncodeState {
  explicit EncodeState(size_t text_bytes) : words(text_bytes), pairs(text_bytes) {}

  std::vector<TokenId> ids;
  WordCache words;
  PairCache pairs;
  SymbolMerger merger;
  PretokenizeScratch pretokenize;
  std::deque<std::string> rewritten;  // stretches that had to be changed; `words` points into them
};

class StretchEncoder {
 public:
  virtual ~StretchEncoder() = default;
  // Appends to state.ids. `starts_text`: no text comes before, or a control piece does. The text
  // must live as long as `state`.
  virtual void encode(std::string_view text, bool starts_text, EncodeState& state) const = 0;
  // Bytes of a text that one id stands for at most; none if some bytes get no id.
  virtual std::optional<size_t> max_token_bytes() const = 0;
};

}  // namespace winnow
