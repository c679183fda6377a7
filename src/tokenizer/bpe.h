// Byte-level BPE: words by the model's pattern, then merges from single bytes by rank.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/stretch_encoder.h"
#include "tokenizer/vocabulary.h"

namespace winnow {

// (left, right) -> merge, open addressing.
class MergeTable {
 public:
  explicit MergeTable(size_t max_merges);
  // The first rank of a pair counts.
  void insert(TokenId left, TokenId right, Merge merge);
  std::optional<Merge> find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;
  size_t slot_of(uint64_t pair) const;

  std::vector<Slot> slots_;
  size_t mask_;
};

class BpeEncoder final : public StretchEncoder {
 public:
  // `vocabulary` must outlive the encoder.
  static Result<std::unique_ptr<BpeEncoder>> create(const Metadata& metadata,
                                                    const Vocabulary& vocabulary);
  bool adds_bos() const { return pretokenizer_.adds_bos(); }
  void encode(std::string_view text, bool starts_text, EncodeState& state) const override;
  std::optional<size_t> max_token_bytes() const override;

 private:
  BpeEncoder(const Vocabulary& vocabulary, Pretokenizer pretokenizer, MergeTable merges);
  void encode_word(std::string_view word, EncodeState& state) const;

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  MergeTable merges_;
  std::array<std::optional<TokenId>, 256> byte_ids_;
  size_t max_piece_bytes_ = 0;
};

}  // namespace winnow
