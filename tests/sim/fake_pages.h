// FakePages: the memory of a model that has no weights. A slot of a page holds the token written to
// it and, in place of K and V, a number that depends on everything that would shape their bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "tensor/kv_layout.h"

namespace winnow::sim {

// How a token was run.
enum class Run : uint8_t { kSparse, kDense, kGenerated };

// A number in which every argument shows.
inline uint64_t mixed(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 31)) * 0x94d049bb133111eb;
  return x ^ (x >> 29);
}

struct Slot {
  TokenId token = -1;
  Run run = Run::kDense;
  int16_t scope = -1;
  uint64_t bits = 0;
};

// What follows from the tokens before: the next one, and whether they are the same bit for bit.
struct Reading {
  uint64_t tokens = 0;
  uint64_t bits = 0;

  void add(const Slot& slot) {
    tokens = mixed(tokens, static_cast<uint64_t>(slot.token));
    bits = mixed(bits, slot.bits);
  }
  TokenId next_token() const { return static_cast<TokenId>(tokens % 1'000'000'007); }
  friend bool operator==(const Reading&, const Reading&) = default;
};

// The slot behind `before`. Rows of a sparse tile choose their blocks together: `rows_together` are
// those of its page in the same step.
inline Slot next_slot(const Slot* before, TokenId token, Run run, int16_t scope,
                      int64_t rows_together) {
  uint64_t bits = mixed(before == nullptr ? 7 : before->bits, static_cast<uint64_t>(token));
  bits = mixed(bits, static_cast<uint64_t>(run) << 16 | static_cast<uint64_t>(scope));
  if (run == Run::kSparse) bits = mixed(bits, static_cast<uint64_t>(rows_together));
  return {token, run, scope, bits};
}

class FakePages {
 public:
  explicit FakePages(int64_t num_pages) : slots_(static_cast<size_t>(num_pages * kPageTokens)) {}

  Slot& slot(std::span<const PageId> table, int64_t position) {
    return slot(table[static_cast<size_t>(position / kPageTokens)], position % kPageTokens);
  }
  Slot& slot(PageId page, int64_t slot_idx) {
    return slots_[static_cast<size_t>(static_cast<int64_t>(page) * kPageTokens + slot_idx)];
  }

 private:
  std::vector<Slot> slots_;
};

}  // namespace winnow::sim
