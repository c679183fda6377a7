#include "kernels/elementwise.h"

namespace winnow {

const ElementwiseKernels& elementwise_kernels_avx2() { return elementwise_kernels_scalar(); }

}  // namespace winnow
