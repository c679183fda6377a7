#include "kernels/attention_kernels.h"

namespace winnow {

const AttentionKernels& attention_kernels_avx512bf16() { return attention_kernels_scalar(); }

}  // namespace winnow
