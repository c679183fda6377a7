#include "tokenizer/spm.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/utf8.h"

namespace winnow {
namespace {

constexpr const char* kScoresKey = "tokenizer.ggml.scores";
// Of a character that is no piece.
constexpr TokenId kNoPiece = -1;

// Equal scores get equal ranks.
std::vector<uint32_t> ranks_of(const std::vector<double>& scores) {
  std::vector<TokenId> order(scores.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  const auto score = [&scores](TokenId id) { return scores[static_cast<size_t>(id)]; };
  std::sort(order.begin(), order.end(), [&](TokenId a, TokenId b) { return score(a) > score(b); });
  std::vector<uint32_t> ranks(scores.size());
  uint32_t rank = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;
    ranks[static_cast<size_t>(order[i])] = rank;
  }
  return ranks;
}

}  // namespace

void Adjacency::add_piece(std::string_view piece) {
  uint32_t left = 0;
  for (size_t pos = 0; pos < piece.size();) {
    const size_t num_bytes = first_utf8_unit(piece.substr(pos)).num_bytes;
    const uint32_t right = packed_character(piece.substr(pos, num_bytes));
    if (pos > 0) {
      if (left < 128 && right < 128) {
        ascii_.set(left * 128 + right);
      } else {
        others_.insert(uint64_t{left} << 32 | right);
      }
    }
    left = right;
    pos += num_bytes;
  }
}

bool Adjacency::may_join(uint32_t left, uint32_t right) const {
  if (left < 128 && right < 128) return ascii_[left * 128 + right];
  return others_.contains(uint64_t{left} << 32 | right);
}

Result<std::unique_ptr<SpmEncoder>> SpmEncoder::create(const Metadata& metadata,
                                                       const Vocabulary& vocabulary) {
  TRY(const std::vector<double>* scores, metadata.number_array(kScoresKey));
  if (scores == nullptr) {
    return fail(ErrorCode::kCorruptFile, "%s: expected an array, found no such key", kScoresKey);
  }
  if (scores->size() != static_cast<size_t>(vocabulary.size())) {
    return fail(ErrorCode::kCorruptFile, "%s: expected %d entries, one for each token, found %zu",
                kScoresKey, vocabulary.size(), scores->size());
  }
  for (size_t i = 0; i < scores->size(); ++i) {
    if (std::isnan((*scores)[i])) {
      return fail(ErrorCode::kCorruptFile, "%s[%zu]: expected a number, found NaN", kScoresKey, i);
    }
  }
  TRY(const bool adds_blank, metadata.boolean_or("tokenizer.ggml.add_space_prefix", true));
  return std::unique_ptr<SpmEncoder>(new SpmEncoder(vocabulary, *scores, adds_blank));
}

SpmEncoder::SpmEncoder(const Vocabulary& vocabulary, const std::vector<double>& scores,
                       bool adds_blank)
    : vocabulary_(vocabulary), adds_blank_(adds_blank), ranks_(ranks_of(scores)) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.pieces[id];
    const TokenKind kind = vocabulary.kinds[static_cast<size_t>(id)];
    if (kind == TokenKind::kNormal) {
      adjacency_.add_piece(piece);
      max_piece_bytes_ = std::max(max_piece_bytes_, piece.size());
    } else if (kind == TokenKind::kByte) {
      byte_ids_[static_cast<uint8_t>(piece[0])] = id;
    }
  }
  for (size_t i = 0; i < ascii_ids_.size(); ++i) {
    const auto character = static_cast<char>(i);
    ascii_ids_[i] = vocabulary.normal.find(vocabulary.pieces, {&character, 1}).value_or(kNoPiece);
  }
}

std::optional<size_t> SpmEncoder::max_token_bytes() const {
  const bool drops_bytes = !vocabulary_.unknown && std::any_of(byte_ids_.begin(), byte_ids_.end(),
                                                               [](const auto& id) { return !id; });
  if (drops_bytes) return std::nullopt;
  // The text may have a blank symbol for each blank of a piece.
  return std::max<size_t>(1, max_piece_bytes_) * kBlankMark.size();
}

void SpmEncoder::encode(std::string_view text, bool starts_text, EncodeState& state) const {
  const bool adds_blank = adds_blank_ && starts_text && !text.empty();
  // A blank symbol in the text and a blank are one and the same to the pieces.
  if (adds_blank || text.find(kBlankMark) != std::string_view::npos) {
    std::string& rewritten = state.rewritten.emplace_back();
    rewritten.reserve(text.size() + 1);
    if (adds_blank) rewritten.push_back(' ');
    for (size_t pos = 0; pos < text.size();) {
      const size_t symbol = std::min(text.find(kBlankMark, pos), text.size());
      rewritten.append(text.substr(pos, symbol - pos));
      if (symbol < text.size()) rewritten.push_back(' ');
      pos = symbol + kBlankMark.size();
    }
    text = rewritten;
  }
  while (!text.empty()) {
    const size_t valid = valid_utf8_prefix(text);
    encode_characters(text.substr(0, valid), state);
    text.remove_prefix(valid);
    if (text.empty()) break;
    append_byte(text[0], state.ids);
    text.remove_prefix(1);
  }
}

void SpmEncoder::encode_characters(std::string_view text, EncodeState& state) const {
  const auto encode_one = [&](std::string_view word) { encode_word(word, state); };
  size_t word_begin = 0;
  uint32_t left = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t num_bytes = first_utf8_unit(text.substr(pos)).num_bytes;
    const uint32_t right = packed_character(text.substr(pos, num_bytes));
    if (pos > word_begin &&
        (!adjacency_.may_join(left, right) || pos - word_begin >= SymbolMerger::kMaxWordBytes)) {
      state.words.append(text.substr(word_begin, pos - word_begin), state.ids, encode_one);
      word_begin = pos;
    }
    left = right;
    pos += num_bytes;
  }
  if (word_begin < text.size()) state.words.append(text.substr(word_begin), state.ids, encode_one);
}

void SpmEncoder::encode_word(std::string_view word, EncodeState& state) const {
  const auto find_piece = [this](std::string_view bytes) {
    return vocabulary_.normal.find(vocabulary_.pieces, bytes);
  };
  state.merger.clear();
  for (size_t pos = 0; pos < word.size();) {
    const size_t num_bytes = first_utf8_unit(word.substr(pos)).num_bytes;
    const TokenId id = num_bytes == 1 ? ascii_ids_[static_cast<uint8_t>(word[pos])]
                                      : find_piece(word.substr(pos, num_bytes)).value_or(kNoPiece);
    state.merger.add({id, static_cast<uint32_t>(pos), static_cast<uint32_t>(pos + num_bytes)});
    pos += num_bytes;
  }
  const auto find_merge = [&](const auto& left, const auto& right) -> std::optional<Merge> {
    if (left.id == kNoPiece || right.id == kNoPiece) return std::nullopt;
    const uint32_t num_bytes = right.end - left.begin;
    if (num_bytes > max_piece_bytes_) return std::nullopt;
    return state.pairs.find(left.id, right.id, [&]() -> std::optional<Merge> {
      const auto id = find_piece(word.substr(left.begin, num_bytes));
      if (!id) return std::nullopt;
      return Merge{ranks_[static_cast<size_t>(*id)], *id};
    });
  };
  for (const SymbolMerger::Symbol& symbol : state.merger.merge_all(find_merge)) {
    if (symbol.id != kNoPiece) {
      state.ids.push_back(symbol.id);
    } else {
      for (uint32_t i = symbol.begin; i < symbol.end; ++i) append_byte(word[i], state.ids);
    }
  }
}

void SpmEncoder::append_byte(char byte, std::vector<TokenId>& ids) const {
  if (const auto id = byte_ids_[static_cast<uint8_t>(byte)]) {
    ids.push_back(*id);
  } else if (vocabulary_.unknown) {
    ids.push_back(*vocabulary_.unknown);
  }
}

}  // namespace winnow
