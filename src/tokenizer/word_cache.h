// WordCache: within one encoding, the ids of words already met. It keeps no copies: a word points
// into the text, its ids are a range of the output.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "tokenizer/piece_table.h"

namespace winnow {

class WordCache {
 public:
  // For about `text_bytes` bytes of text.
  explicit WordCache(size_t text_bytes)
      : slots_(std::clamp<size_t>(std::bit_ceil(text_bytes / 8 + 1), 64, 65536)),
        mask_(slots_.size() - 1) {}

  // Appends the ids of `word` to `ids`: copied from its last occurrence, or by calling
  // encode_word(word), which appends them. The text that `word` is a part of must live as long as
  // the cache, and `ids` must only grow.
  template <class EncodeWord>
  void append(std::string_view word, std::vector<TokenId>& ids, const EncodeWord& encode_word) {
    if (word.size() > kMaxWordBytes) {
      encode_word(word);
      return;
    }
    Slot& slot = slots_[hash_bytes(word) & mask_];
    if (slot.word == word) {
      const size_t begin = ids.size();
      ids.resize(begin + slot.num_ids);
      std::copy_n(ids.begin() + slot.first_id, slot.num_ids, ids.begin() + begin);
      return;
    }
    const size_t first_id = ids.size();
    encode_word(word);
    slot = {word, static_cast<int64_t>(first_id), static_cast<int64_t>(ids.size() - first_id)};
  }

 private:
  static constexpr size_t kMaxWordBytes = 128;
  struct Slot {
    std::string_view word;
    int64_t first_id = 0, num_ids = 0;
  };
  std::vector<Slot> slots_;
  size_t mask_;
};

}  // namespace winnow
