#include "kernels/elementwise.h"

namespace winnow {

const ElementwiseKernels& elementwise_kernels_avx512() { return elementwise_kernels_scalar(); }

}  // namespace winnow
