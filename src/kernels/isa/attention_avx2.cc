#include "kernels/attention_kernels.h"

namespace winnow {

const AttentionKernels& attention_kernels_avx2() { return attention_kernels_scalar(); }

}  // namespace winnow
