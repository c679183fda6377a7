#include "tokenizer/piece_table.h"

#include <bit>
#include <cstring>

namespace winnow {

uint64_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  uint64_t hash = bytes.size() * kMultiplier;
  const auto mix = [&hash](uint64_t word) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * kMultiplier;
    hash = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t word = 0;
  while (bytes.size() >= sizeof(word)) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    mix(word);
    bytes.remove_prefix(sizeof(word));
  }
  word = 0;
  std::memcpy(&word, bytes.data(), bytes.size());
  mix(word);
  return hash * kMultiplier;
}

void PieceTable::add(std::string_view bytes) {
  bytes_.append(bytes);
  begins_.push_back(bytes_.size());
}

PieceIndex::PieceIndex(size_t max_pieces)
    : slots_(std::bit_ceil(max_pieces * 2 + 2)), mask_(slots_.size() - 1) {}

std::optional<TokenId> PieceIndex::insert(const PieceTable& pieces, TokenId id) {
  const std::string_view bytes = pieces[id];
  const uint64_t hash = hash_bytes(bytes);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  size_t idx = hash & mask_;
  for (; slots_[idx].id_plus_one != 0; idx = (idx + 1) & mask_) {
    const TokenId other = slots_[idx].id_plus_one - 1;
    if (slots_[idx].tag == tag && pieces[other] == bytes) return other;
  }
  slots_[idx] = {tag, id + 1};
  return std::nullopt;
}

std::optional<TokenId> PieceIndex::find(const PieceTable& pieces, std::string_view bytes) const {
  const uint64_t hash = hash_bytes(bytes);
  const auto tag = static_cast<uint32_t>(hash >> 32);
  for (size_t idx = hash & mask_; slots_[idx].id_plus_one != 0; idx = (idx + 1) & mask_) {
    const TokenId id = slots_[idx].id_plus_one - 1;
    if (slots_[idx].tag == tag && pieces[id] == bytes) return id;
  }
  return std::nullopt;
}

}  // namespace winnow
