// Weight rows of any type as bf16 tiles, the right operand of a tile product. Needs the vocabulary
// of isa/codes_x86.h; for isa/ files of levels with AVX512-BF16 only.
#pragma once

#include "kernels/generic/weight_codes.inl.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

constexpr int kTileOutputs = 16;
constexpr int kTileColumns = 32;
constexpr int kTileNumbers = kTileOutputs * kTileColumns;

// Sixteen rows of sixteen 32-bit units: rows become columns. Each round swaps the off-diagonal
// squares of half the size.
inline void transpose(__m512i (&units)[16]) {
#pragma GCC unroll 4
  for (int size = 8; size > 0; size /= 2) {
    alignas(64) uint32_t upper[16], lower[16];
    for (int i = 0; i < 16; ++i) {
      const auto lane = static_cast<uint32_t>(i), step = static_cast<uint32_t>(size);
      upper[i] = (lane & step) == 0 ? lane : lane - step + 16;
      lower[i] = (lane & step) == 0 ? lane + step : lane + 16;
    }
    const __m512i from_upper = _mm512_load_si512(upper), from_lower = _mm512_load_si512(lower);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if ((i & size) != 0) continue;
      const __m512i a = units[i], b = units[i + size];
      units[i] = _mm512_permutex2var_epi32(a, from_upper, b);
      units[i + size] = _mm512_permutex2var_epi32(a, from_lower, b);
    }
  }
}

// Sixteen outputs' 32 columns, as pairs of bf16, to [pair of columns][output][2]. One copy serves
// all types: it takes little time beside the 512 weights it moves.
[[gnu::noinline]] inline void store_tile(const __m512i* outputs, uint16_t* tile) {
  __m512i units[kTileOutputs];
#pragma GCC unroll 16
  for (int i = 0; i < kTileOutputs; ++i) units[i] = _mm512_load_si512(outputs + i);
  transpose(units);
#pragma GCC unroll 16
  for (int i = 0; i < kTileOutputs; ++i) _mm512_store_si512(tile + i * kTileColumns, units[i]);
}

// row(i) is output i's 32 columns; outputs that are missing become zeros.
template <class Row>
[[gnu::always_inline]] inline void store_weight_tile(int num_outputs, uint16_t* tile, Row row) {
  __m512i outputs[kTileOutputs];
  for (int i = 0; i < kTileOutputs; ++i) {
    outputs[i] = i < num_outputs ? row(i) : _mm512_setzero_si512();
  }
  store_tile(outputs, tile);
}

inline __m512i round_pairs(__m512 first, __m512 second) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// Up to 16 weight rows that follow each other in the file.
struct WeightRows {
  const uint8_t* first;
  int64_t row_bytes;
  int count;

  const uint8_t* row(int i) const { return first + i * row_bytes; }
};

// A type's to_tiles() turns columns [first, first + count), first a multiple of 256, into tiles
// that are `tile_stride` numbers apart; columns past the last are zero in the last tile.
template <class Type>
struct QuantizedWeights {
  static void to_tiles(const WeightRows& rows, int64_t first, int64_t count, uint16_t* tiles,
                       int64_t tile_stride) {
    const int64_t num_groups = count / kTileColumns;
    for (int64_t group = 0; group < num_groups; group += kSpanGroups) {
      const int64_t span_idx = first / (kSpanGroups * kTileColumns) + group / kSpanGroups;
      const int64_t left = num_groups - group;
      const int n = left < kSpanGroups ? static_cast<int>(left) : kSpanGroups;
      span_to_tiles(rows, span_idx * Type::kSpanBytes, n, tiles + group * tile_stride, tile_stride);
    }
  }

 private:
  struct Scales {
    alignas(32) float d[kTileOutputs][kMaxScales];
    alignas(32) float m[kTileOutputs][kMaxScales];
  };

  static void span_to_tiles(const WeightRows& rows, int64_t offset, int n, uint16_t* tiles,
                            int64_t tile_stride) {
    Scales scales;
    for (int i = 0; i < rows.count; ++i) {
      Type::scales(rows.row(i) + offset, n, scales.d[i], scales.m[i]);
    }
    groups_to_tiles<0>(rows, offset, n, scales, tiles, tile_stride);
  }

  template <int g>
  static void groups_to_tiles(const WeightRows& rows, int64_t offset, int n, const Scales& scales,
                              uint16_t* tiles, int64_t tile_stride) {
    if constexpr (g < kSpanGroups) {
      if (g >= n) return;
      store_weight_tile(rows.count, tiles + g * tile_stride, [&](int i) {
        return group_weights<g>(rows.row(i) + offset, scales.d[i], scales.m[i]);
      });
      groups_to_tiles<g + 1>(rows, offset, n, scales, tiles, tile_stride);
    }
  }

  template <int g>
  [[gnu::always_inline]] static inline __m512i group_weights(const uint8_t* span, const float* d,
                                                             const float* m) {
    alignas(64) int16_t codes[kTileColumns];
    codes_store_wide<Type::kBits == 8>(codes, Type::template codes<g>(span), Type::kZero);
    constexpr int kSecond = Type::kHalves ? kSpanGroups + g : g;
    return round_pairs(weights_of(codes, d[g], m[g]),
                       weights_of(codes + 16, d[kSecond], m[kSecond]));
  }

  [[gnu::always_inline]] static inline __m512 weights_of(const int16_t* codes, float d, float m) {
    const __m256i sixteen = _mm256_load_si256(reinterpret_cast<const __m256i*>(codes));
    const __m512 code = _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(sixteen));
    if constexpr (Type::kMinimums) {
      return _mm512_fmadd_ps(code, _mm512_set1_ps(d), _mm512_set1_ps(m));
    } else {
      return _mm512_mul_ps(code, _mm512_set1_ps(d));
    }
  }
};

// Lanes i < count, for any count above 0.
inline __mmask32 first_columns(int64_t count) {
  return count >= kTileColumns ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

struct Bf16Weights {
  static __m512i round(__m512i halves) { return halves; }
};
struct F16Weights {
  static __m512i round(__m512i halves) {
    return round_pairs(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)),
                       _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)));
  }
};
template <class Type>
struct HalfWeights {
  static void to_tiles(const WeightRows& rows, int64_t first, int64_t count, uint16_t* tiles,
                       int64_t tile_stride) {
    for (int64_t col = 0; col < count; col += kTileColumns) {
      const __mmask32 columns = first_columns(count - col);
      const int64_t offset = (first + col) * 2;
      store_weight_tile(rows.count, tiles + col / kTileColumns * tile_stride, [&](int i) {
        return Type::round(_mm512_maskz_loadu_epi16(columns, rows.row(i) + offset));
      });
    }
  }
};

}  // namespace
}  // namespace winnow
