#include "kernels/linear_kernels.h"

// The vocabulary comes before the algorithms written over it.
// clang-format off
#include "kernels/isa/codes_x86.h"
#include "kernels/isa/tile_avx512.h"
#include "kernels/generic/linear_entry.inl.h"
// clang-format on

namespace winnow {

const LinearKernels& linear_kernels_avx512() { return kKernels; }

}  // namespace winnow
