// Elementwise kernels on NEON.
#include "kernels/generic/elementwise.inl.h"
#include "kernels/isa/simd_neon.h"

namespace winnow {
namespace {

using Kernels = Elementwise<Neon>;

constexpr ElementwiseKernels kKernels = {
    Kernels::rms_norm, Kernels::rope, Kernels::gated_activation, Kernels::add, Kernels::soft_cap,
};

}  // namespace

const ElementwiseKernels& elementwise_kernels_neon() { return kKernels; }

}  // namespace winnow
