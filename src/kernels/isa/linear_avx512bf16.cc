// Quantised weights gain nothing from bf16 products, and plain weights keep the f32 input.
#include "kernels/linear_kernels.h"

namespace winnow {

const LinearKernels& linear_kernels_avx512bf16() { return linear_kernels_avx512(); }

}  // namespace winnow
