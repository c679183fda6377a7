// Slow, exact de-quantisation of every stored type: the specification that fast paths are compared
// with. Equals the `gguf` package bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace winnow {

// Writes `elements` floats to `out`. Requires elements % group_size == 0. `data` needs no
// alignment.
void dequantize(DType dtype, const std::byte* data, int64_t elements, float* out);

}  // namespace winnow
