// A weight matrix as it lies in the model file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace winnow {

// [rows, cols], row-major; every row is a whole number of quantisation groups. Not owned.
struct WeightView {
  DType dtype = DType::kF32;
  int64_t rows = 0;  // outputs
  int64_t cols = 0;  // inputs
  const std::byte* data = nullptr;

  int64_t row_bytes() const { return dtype_bytes(dtype, cols); }
  const std::byte* row(int64_t row_idx) const { return data + row_idx * row_bytes(); }
};

}  // namespace winnow
