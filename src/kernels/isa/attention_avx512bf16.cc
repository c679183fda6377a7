// Attention with bf16 products on AVX512-BF16: two multiply-adds per lane, K and V straight from
// the page. An f16 cache takes the f32 products.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/bf16_avx512.h"

namespace winnow {
namespace {

struct Level : Avx512 {
  static constexpr int kStripRows = 12;
  static constexpr int kPairedRows = 12;
};

struct Bf16Dot {
  static constexpr int kNumbers = 2;

  static __m512 add(__m512 a, __m512 b, __m512 c) {
    return _mm512_dpbf16_ps(c, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static const float* convert(KvDType, const uint16_t* from, int32_t, float*) {
    return reinterpret_cast<const float*>(from);
  }
  static void pack_row(const float* row, int32_t dims, float scale, float* to) {
    alignas(64) uint32_t units[128];
    Bf16Operands::pack(row, dims, scale, reinterpret_cast<uint16_t*>(units));
    auto* out = reinterpret_cast<uint32_t*>(to);
    for (int32_t i = 0; i < dims / 2; ++i) out[i * Level::kStripRows] = units[i];
  }
  static void store_weights(float* row, int32_t token, __m512 weights) {
    Bf16Operands::store_weights(row, token, weights);
  }
};

using Bf16Attention = Attention<Level, VectorProducts<Level, Bf16Dot>>;
using FloatAttention = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

void begin(const AttentionTile& tile) {
  tile.dtype == KvDType::kBf16 ? Bf16Attention::begin(tile) : FloatAttention::begin(tile);
}

void visit(const AttentionTile& tile, const AttentionBlock* blocks, int32_t num_blocks) {
  if (tile.dtype == KvDType::kBf16) {
    Bf16Attention::visit(tile, blocks, num_blocks);
  } else {
    FloatAttention::visit(tile, blocks, num_blocks);
  }
}

void visit_steps(const AttentionTile& tile, const AttentionStep* steps, int32_t num_steps) {
  if (tile.dtype == KvDType::kBf16) {
    Bf16Attention::visit_steps(tile, steps, num_steps);
  } else {
    FloatAttention::visit_steps(tile, steps, num_steps);
  }
}

// The states lie alike.
constexpr AttentionKernels kKernels = {
    FloatAttention::scratch_bytes,
    begin,
    visit,
    visit_steps,
    FloatAttention::state,
    FloatAttention::finish,
    KvWriter<Level>::store,
};

}  // namespace

const AttentionKernels& attention_kernels_avx512bf16() { return kKernels; }

}  // namespace winnow
