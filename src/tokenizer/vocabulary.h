// Vocabulary: the tokens of a model and what each is for, read and checked from its metadata.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tokenizer/piece_table.h"
#include "tokenizer/special_matcher.h"
#include "weights/metadata.h"

namespace winnow {

// As stored in tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown,
  kControl,
  kUserDefined,
  kUnused,
  kByte,
};

// What SentencePiece writes for a blank.
inline constexpr std::string_view kBlankMark = "\u2581";

// How the model file writes the bytes of a normal piece.
enum class PieceEncoding {
  kByteSymbols,  // byte-level BPE: one character per byte
  kBlankSymbol,  // SentencePiece: U+2581 for a blank
};

struct Vocabulary {
  PieceTable pieces;
  std::vector<TokenKind> kinds;
  PieceIndex normal;        // of the normal pieces
  SpecialMatcher specials;  // control, unknown and user-defined pieces
  std::optional<TokenId> bos, eos, unknown;
  std::vector<TokenId> end_tokens;

  int32_t size() const { return pieces.size(); }
  bool is_control(TokenId id) const {
    const TokenKind kind = kinds[static_cast<size_t>(id)];
    return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
  }
};

Result<Vocabulary> read_vocabulary(const Metadata& metadata, PieceEncoding encoding);

}  // namespace winnow
