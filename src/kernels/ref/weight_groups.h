// Every quantised type seen as one: a group of 32 weights is w = d * code + m, with d and m per
// half of 16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace winnow::ref {

struct WeightGroup {
  int codes[32];  // -128..127 for 8-bit and table types, unsigned below 64 for all others
  float d[2];
  float m[2];
};

// Reads columns [32 * group_idx, 32 * group_idx + 32) of a weight row. Requires
// is_quantized(dtype).
WeightGroup read_weight_group(DType dtype, const std::byte* row, int64_t group_idx);

}  // namespace winnow::ref
