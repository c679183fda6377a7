// Elementwise kernels on AVX2.
#include "kernels/generic/elementwise.inl.h"
#include "kernels/isa/simd_avx2.h"

namespace winnow {
namespace {

using Kernels = Elementwise<Avx2>;

constexpr ElementwiseKernels kKernels = {
    Kernels::rms_norm, Kernels::rope, Kernels::gated_activation, Kernels::add, Kernels::soft_cap,
};

}  // namespace

const ElementwiseKernels& elementwise_kernels_avx2() { return kKernels; }

}  // namespace winnow
