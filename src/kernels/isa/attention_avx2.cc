// Attention with f32 products on AVX2.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/simd_avx2.h"

namespace winnow {
namespace {

// 6 rows x 16 lanes are 12 of the 16 registers: 12 multiply-adds per 8 loads.
struct Level : Avx2 {
  static constexpr int kStripRows = 6;
  static constexpr int kPairedRows = 3;
};

using Kernels = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

constexpr AttentionKernels kKernels = {
    Kernels::scratch_bytes, Kernels::begin,  Kernels::visit,         Kernels::visit_steps,
    Kernels::state,         Kernels::finish, KvWriter<Level>::store,
};

}  // namespace

const AttentionKernels& attention_kernels_avx2() { return kKernels; }

}  // namespace winnow
