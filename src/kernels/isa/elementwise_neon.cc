#include "kernels/elementwise.h"

namespace winnow {

const ElementwiseKernels& elementwise_kernels_neon() { return elementwise_kernels_scalar(); }

}  // namespace winnow
