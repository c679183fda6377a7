// Elementwise kernels on AVX-512.
#include "kernels/generic/elementwise.inl.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

using Kernels = Elementwise<Avx512>;

constexpr ElementwiseKernels kKernels = {
    Kernels::rms_norm, Kernels::rope, Kernels::gated_activation, Kernels::add, Kernels::soft_cap,
};

}  // namespace

const ElementwiseKernels& elementwise_kernels_avx512() { return kKernels; }

}  // namespace winnow
