// SentencePiece BPE: merges characters into the pieces with the best scores; characters without a
// piece become byte pieces.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "tokenizer/stretch_encoder.h"
#include "tokenizer/vocabulary.h"

namespace winnow {

// Which characters stand side by side in some piece. Between two that never do, no merge can
// happen, so a text may be cut there: SentencePiece has no pre-tokeniser, yet words stay short.
class Adjacency {
 public:
  void add_piece(std::string_view piece);
  // Packed characters, see packed_character().
  bool may_join(uint32_t left, uint32_t right) const;

 private:
  std::bitset<128 * 128> ascii_;
  std::unordered_set<uint64_t> others_;
};

class SpmEncoder final : public StretchEncoder {
 public:
  // `vocabulary` must outlive the encoder.
  static Result<std::unique_ptr<SpmEncoder>> create(const Metadata& metadata,
                                                    const Vocabulary& vocabulary);
  void encode(std::string_view text, bool starts_text, EncodeState& state) const override;
  std::optional<size_t> max_token_bytes() const override;
  bool adds_blank() const { return adds_blank_; }

 private:
  SpmEncoder(const Vocabulary& vocabulary, const std::vector<double>& scores, bool adds_blank);
  // Cuts a stretch of characters into words that merges never leave.
  void encode_characters(std::string_view text, EncodeState& state) const;
  void encode_word(std::string_view word, EncodeState& state) const;
  void append_byte(char byte, std::vector<TokenId>& ids) const;

  const Vocabulary& vocabulary_;
  bool adds_blank_;  // before a text that starts
  size_t max_piece_bytes_ = 0;
  std::vector<uint32_t> ranks_;  // of each token: 0 for the best score
  Adjacency adjacency_;
  std::array<std::optional<TokenId>, 256> byte_ids_;
  std::array<TokenId, 128> ascii_ids_;  // of the pieces of one ASCII character
};

}  // namespace winnow
