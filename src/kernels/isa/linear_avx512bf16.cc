#include "kernels/linear_kernels.h"

namespace winnow {

const LinearKernels& linear_kernels_avx512bf16() { return linear_kernels_scalar(); }

}  // namespace winnow
