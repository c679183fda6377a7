// Attention with f32 products on AVX-512.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

// 12 rows x 2 groups of 16 lanes are 24 of the 32 registers: 24 multiply-adds per 14 loads.
struct Level : Avx512 {
  static constexpr int kStripRows = 12;
  static constexpr int kPairedRows = 12;
};

using Kernels = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

constexpr AttentionKernels kKernels = {
    Kernels::scratch_bytes, Kernels::begin,  Kernels::visit,         Kernels::visit_steps,
    Kernels::state,         Kernels::finish, KvWriter<Level>::store,
};

}  // namespace

const AttentionKernels& attention_kernels_avx512() { return kKernels; }

}  // namespace winnow
