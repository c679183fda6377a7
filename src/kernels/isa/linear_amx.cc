// The level has no kernels of its own yet: it multiplies as AVX-512 does.
#include "kernels/linear_kernels.h"

namespace winnow {

const LinearKernels& linear_kernels_amx() { return linear_kernels_avx512(); }

}  // namespace winnow
