// PieceTable: the bytes of every token. PieceIndex: which token has these bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace winnow {

// Well mixed in the upper and the lower bits; not meant to resist an attacker.
uint64_t hash_bytes(std::string_view bytes);

class PieceTable {
 public:
  void add(std::string_view bytes);
  std::string_view operator[](TokenId id) const {
    const auto idx = static_cast<size_t>(id);
    return {bytes_.data() + begins_[idx], begins_[idx + 1] - begins_[idx]};
  }
  int32_t size() const { return static_cast<int32_t>(begins_.size()) - 1; }

 private:
  std::string bytes_;
  std::vector<size_t> begins_ = {0};
};

// Open addressing over a PieceTable that the caller keeps.
class PieceIndex {
 public:
  // Room for `max_pieces` insertions.
  explicit PieceIndex(size_t max_pieces = 0);
  // The token that already has the same bytes, if there is one; then nothing is inserted.
  std::optional<TokenId> insert(const PieceTable& pieces, TokenId id);
  std::optional<TokenId> find(const PieceTable& pieces, std::string_view bytes) const;

 private:
  struct Slot {
    uint32_t tag = 0;         // upper half of the hash
    TokenId id_plus_one = 0;  // 0: the slot is empty
  };
  std::vector<Slot> slots_;
  size_t mask_ = 0;
};

}  // namespace winnow
