// Hands blocks and steps to an attention kernel many at a time.
#pragma once

#include <cstdint>

#include "kernels/attention_kernels.h"

namespace winnow {

// Pages whose K and V stay in the second-level cache while one strip of rows after the other goes
// through them.
constexpr int32_t pages_at_once(int32_t head_dim) {
  constexpr int32_t kVisitBytes = 512 * 1024;
  constexpr int32_t kMaxPages = 16;
  const int32_t pages = kVisitBytes / (4 * kPageTokens * head_dim);
  return pages < kMaxPages ? pages : kMaxPages;
}
inline constexpr int32_t kMostPagesAtOnce = pages_at_once(16);

// Items of a tile, of which a page has kPerPage, handed on by kVisit. Visits what is left at its
// end.
template <class Item, auto kVisit, int32_t kPerPage>
class Visits {
 public:
  Visits(const AttentionKernels& kernels, const AttentionTile& tile)
      : kernels_(kernels), tile_(tile), at_once_(pages_at_once(tile.head_dim) * kPerPage) {}
  ~Visits() { flush(); }
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;

  void add(const Item& item) {
    items_[num_items_++] = item;
    if (num_items_ == at_once_) flush();
  }

 private:
  void flush() {
    if (num_items_ > 0) (kernels_.*kVisit)(tile_, items_, num_items_);
    num_items_ = 0;
  }

  const AttentionKernels& kernels_;
  const AttentionTile& tile_;
  int32_t at_once_;
  Item items_[kMostPagesAtOnce * kPerPage];
  int32_t num_items_ = 0;
};

using BlockVisits = Visits<AttentionBlock, &AttentionKernels::visit, 1>;
// Steps that every row of the tile sees whole.
using StepVisits = Visits<AttentionStep, &AttentionKernels::visit_steps, kMaxSteps>;

}  // namespace winnow
