// Checked: the one type for sizes, counts and offsets that come from a file. Arithmetic that would
// leave the range of uint64_t poisons the value; a poisoned value stays poisoned and never compares
// as in range.
#pragma once

#include <cstdint>
#include <optional>

namespace winnow {

class Checked {
 public:
  constexpr Checked(uint64_t value) : value_(value) {}  // NOLINT(*-explicit-*)

  constexpr bool valid() const { return valid_; }
  // The number, or nothing after an overflow.
  constexpr std::optional<uint64_t> get() const {
    return valid_ ? std::optional<uint64_t>(value_) : std::nullopt;
  }
  constexpr bool at_most(uint64_t limit) const { return valid_ && value_ <= limit; }

  friend constexpr Checked operator+(Checked a, Checked b) {
    Checked sum(0);
    sum.valid_ = a.valid_ && b.valid_ && !__builtin_add_overflow(a.value_, b.value_, &sum.value_);
    return sum;
  }
  friend constexpr Checked operator*(Checked a, Checked b) {
    Checked product(0);
    product.valid_ =
        a.valid_ && b.valid_ && !__builtin_mul_overflow(a.value_, b.value_, &product.value_);
    return product;
  }
  friend constexpr Checked operator-(Checked a, Checked b) {
    Checked difference(0);
    difference.valid_ =
        a.valid_ && b.valid_ && !__builtin_sub_overflow(a.value_, b.value_, &difference.value_);
    return difference;
  }
  // Rounds up to a multiple of `alignment`. Requires alignment > 0.
  constexpr Checked round_up(uint64_t alignment) const {
    const Checked padded = *this + Checked(alignment - 1);
    Checked rounded(padded.valid_ ? padded.value_ / alignment * alignment : 0);
    rounded.valid_ = padded.valid_;
    return rounded;
  }

 private:
  uint64_t value_ = 0;
  bool valid_ = true;
};

static_assert((Checked(UINT64_MAX) * 2 + 1).get() == std::nullopt);
static_assert(Checked(33).round_up(32).get() == 64);

}  // namespace winnow
