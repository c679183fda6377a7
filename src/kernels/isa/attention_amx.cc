// Attention with bf16 products on AMX tiles: 16 rows x 16 tokens (or dims) x 32 numbers per
// instruction, K and V straight from the page. An f16 cache takes the f32 products of AVX-512.
#include "kernels/generic/attention.inl.h"
#include "kernels/generic/attention_store.inl.h"
#include "kernels/isa/amx_tiles.h"
#include "kernels/isa/bf16_avx512.h"

namespace winnow {
namespace {

// Tile registers. A head_dim of an odd number of 16s ends in a product of half the depth.
constexpr int kC0 = 0, kC1 = 1, kLeft = 2, kRight0 = 3, kRight1 = 4;
constexpr int kHalfLeft = 5, kHalfRight0 = 6, kHalfRight1 = 7;
constexpr int kRowBytes = 64;

constexpr TileConfig kTileConfig = [] {
  TileConfig config;
  config.bytes_per_row[kHalfLeft] = 32;
  config.rows[kHalfRight0] = config.rows[kHalfRight1] = 8;
  return config;
}();

struct AmxProducts {
  static constexpr int kStripRows = 16;

  // Row-major: [strip][16][head_dim] bf16. Rows that a strip lacks hold anything; tile rows do not
  // mix.
  static void pack_q_row(const AttentionTile& tile, const float* row, float scale, float* q,
                         int32_t strip, int32_t row_in_strip) {
    const int64_t row_idx = int64_t{strip} * kStripRows + row_in_strip;
    Bf16Operands::pack(row, tile.head_dim, scale,
                       reinterpret_cast<uint16_t*>(q) + row_idx * tile.head_dim);
  }
  static Operand prepare_k(const AttentionTile& tile, const uint16_t* k, int32_t token, float*) {
    return {reinterpret_cast<const float*>(k + int64_t{token} * tile.head_dim),
            int64_t{tile.head_dim} / 2 * kKvLanes};
  }
  static Operand prepare_v(const AttentionTile&, const uint16_t* v, int32_t, TokenRange, float*) {
    return {reinterpret_cast<const float*>(v), kVGroupUnits};
  }
  static void store_weights(float* row, int32_t token, __m512 weights) {
    Bf16Operands::store_weights(row, token, weights);
  }

  // Writes 16 rows whatever `rows` is: the strip behind this one is computed later, and the last
  // one has kSpareRows behind it.
  static void logits(const AttentionTile& tile, const float* q, int32_t strip, int32_t, Operand k,
                     float* logits) {
    const auto* left =
        reinterpret_cast<const uint16_t*>(q) + int64_t{strip} * kStripRows * tile.head_dim;
    const int64_t left_bytes = int64_t{2} * tile.head_dim;
    const float* right = k.data;
    tile_zero<kC0>();
    tile_zero<kC1>();
    int32_t dim = 0;
    for (; dim + 32 <= tile.head_dim; dim += 32) {
      tile_load<kLeft>(left + dim, left_bytes);
      tile_load<kRight0>(right, kRowBytes);
      tile_load<kRight1>(right + k.group_stride, kRowBytes);
      tile_dot_bf16<kC0, kLeft, kRight0>();
      tile_dot_bf16<kC1, kLeft, kRight1>();
      right += 16 * kKvLanes;
    }
    if (dim < tile.head_dim) {
      tile_load<kHalfLeft>(left + dim, left_bytes);
      tile_load<kHalfRight0>(right, kRowBytes);
      tile_load<kHalfRight1>(right + k.group_stride, kRowBytes);
      tile_dot_bf16<kC0, kHalfLeft, kHalfRight0>();
      tile_dot_bf16<kC1, kHalfLeft, kHalfRight1>();
    }
    constexpr int64_t kLogitBytes = int64_t{kPageTokens} * 4;
    tile_store<kC0>(logits, kLogitBytes);
    tile_store<kC1>(logits + kKvLanes, kLogitBytes);
  }

  static void weigh(const AttentionTile& tile, const float* weights, int32_t weights_begin,
                    int32_t rows, Operand v, int32_t num_groups, TokenRange tokens,
                    const float* shrink, float* acc) {
    const auto* left = reinterpret_cast<const uint16_t*>(weights) + weights_begin;
    for (int32_t group = 0; group < num_groups; ++group) {
      weigh_group(tile, left, rows, v.data + group * v.group_stride, tokens, shrink,
                  acc + group * kKvLanes);
    }
  }

 private:
  // Through a buffer of 16 rows, so that the rows behind the last one stay as they are.
  static void weigh_group(const AttentionTile& tile, const uint16_t* weights, int32_t rows,
                          const float* v, TokenRange tokens, const float* shrink, float* acc) {
    alignas(64) float sums[kStripRows * kKvLanes];
    for (int32_t row = 0; row < kStripRows; ++row) {
      const __m512 sum = row < rows
                             ? _mm512_mul_ps(_mm512_loadu_ps(acc + int64_t{row} * tile.head_dim),
                                             _mm512_set1_ps(shrink[row]))
                             : _mm512_setzero_ps();
      _mm512_store_ps(sums + row * kKvLanes, sum);
    }
    tile_load<kC0>(sums, kRowBytes);
    constexpr int64_t kWeightBytes = int64_t{kPageTokens} * 4;
    for (int32_t token = tokens.begin; token < tokens.end; token += 32) {
      tile_load<kLeft>(weights + (token - tokens.begin), kWeightBytes);
      tile_load<kRight0>(v + int64_t{token} / 2 * kKvLanes, kRowBytes);
      tile_dot_bf16<kC0, kLeft, kRight0>();
    }
    tile_store<kC0>(sums, kRowBytes);
    for (int32_t row = 0; row < rows; ++row) {
      _mm512_storeu_ps(acc + int64_t{row} * tile.head_dim, _mm512_load_ps(sums + row * kKvLanes));
    }
  }
};

struct Level : Avx512 {
  static constexpr int kStripRows = 12;
  static constexpr int kPairedRows = 12;
};

using TileAttention = Attention<Level, AmxProducts>;
using FloatAttention = Attention<Level, VectorProducts<Level, FloatDot<Level>>>;

void begin(const AttentionTile& tile) {
  tile.dtype == KvDType::kBf16 ? TileAttention::begin(tile) : FloatAttention::begin(tile);
}

void visit(const AttentionTile& tile, const AttentionBlock& block) {
  if (tile.dtype != KvDType::kBf16) return FloatAttention::visit(tile, block);
  tile_configure(kTileConfig);
  TileAttention::visit(tile, block);
  tile_release();
}

void visit_steps(const AttentionTile& tile, const AttentionStep* steps, int32_t num_steps) {
  if (tile.dtype != KvDType::kBf16) return FloatAttention::visit_steps(tile, steps, num_steps);
  tile_configure(kTileConfig);
  TileAttention::visit_steps(tile, steps, num_steps);
  tile_release();
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

const AttentionKernels& attention_kernels_amx() { return kKernels; }

}  // namespace winnow
