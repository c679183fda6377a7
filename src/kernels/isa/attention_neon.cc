// Attention with f32 products on NEON.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/simd_neon.h"

namespace winnow {
namespace {

// 6 rows x 16 lanes are 24 of the 32 registers.
struct Level : Neon {
  static constexpr int kStripRows = 6;
  static constexpr int kPairedRows = 2;
};

using Kernels = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

constexpr AttentionKernels kKernels = {
    Kernels::scratch_bytes, Kernels::begin,  Kernels::visit,         Kernels::visit_steps,
    Kernels::state,         Kernels::finish, KvWriter<Level>::store,
};

}  // namespace

const AttentionKernels& attention_kernels_neon() { return kKernels; }

}  // namespace winnow
