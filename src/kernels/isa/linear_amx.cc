#include "kernels/linear_kernels.h"

namespace winnow {

const LinearKernels& linear_kernels_amx() { return linear_kernels_scalar(); }

}  // namespace winnow
