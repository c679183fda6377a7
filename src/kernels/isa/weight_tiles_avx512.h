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

// rows[i]: the 32 codes of output i, then those of output i + 8. At 64 * i, `codes` gets columns 2i
// and 2i + 1 of outputs 0 to 7, output by output; 16 bytes behind, columns 16 + 2i and 17 + 2i;
// 32 bytes behind each, the same of outputs 8 to 15.
[[gnu::always_inline]] inline void pair_columns(const __m512i (&rows)[8], int8_t* codes) {
  __m512i a[8], b[8];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    b[2 * i] = _mm512_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    b[2 * i + 1] = _mm512_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    a[i] = _mm512_unpacklo_epi32(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi32(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi32(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi32(b[i + 1], b[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm512_store_si512(codes + 128 * i, _mm512_unpacklo_epi64(a[i], a[i + 4]));
    _mm512_store_si512(codes + 128 * i + 64, _mm512_unpackhi_epi64(a[i], a[i + 4]));
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
  const uint8_t* row_or_last(int i) const { return row(i < count ? i : count - 1); }
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
  // Of one group or half: each output's number twice, outputs 0 to 7 and 8 to 15.
  struct OutputPairs {
    __m512 low, high;
  };
  // [scale][output].
  using ScaleColumns = float[kMaxScales][kTileOutputs];

  static constexpr int kNumScales = Type::kHalves ? kMaxScales : kSpanGroups;

  static void turn(const float (&rows)[kTileOutputs][kMaxScales], ScaleColumns& columns) {
    for (int first = 0; first < kNumScales; first += 8) {
      float8_transpose(rows[0] + first, kMaxScales, columns[first], kTileOutputs);
      float8_transpose(rows[8] + first, kMaxScales, columns[first] + 8, kTileOutputs);
    }
  }

  static void span_to_tiles(const WeightRows& rows, int64_t offset, int n, uint16_t* tiles,
                            int64_t tile_stride) {
    alignas(64) float d_rows[kTileOutputs][kMaxScales], m_rows[kTileOutputs][kMaxScales];
    const uint8_t* spans[kTileOutputs];
    for (int i = 0; i < kTileOutputs; ++i) {
      spans[i] = rows.row_or_last(i) + offset;
      if (i < rows.count) {
        Type::scales(spans[i], n, d_rows[i], m_rows[i]);
      } else {
        std::memset(d_rows[i], 0, sizeof(d_rows[i]));
        std::memset(m_rows[i], 0, sizeof(m_rows[i]));
      }
    }
    alignas(64) ScaleColumns d, m;
    turn(d_rows, d);
    if constexpr (Type::kMinimums) turn(m_rows, m);
    groups_to_tiles<0>(spans, n, d, m, tiles, tile_stride);
  }

  template <int g>
  static void groups_to_tiles(const uint8_t* const (&spans)[kTileOutputs], int n,
                              const ScaleColumns& d, const ScaleColumns& m, uint16_t* tiles,
                              int64_t tile_stride) {
    if constexpr (g < kSpanGroups) {
      if (g >= n) return;
      group_to_tile<g>(spans, d, m, tiles + g * tile_stride);
      groups_to_tiles<g + 1>(spans, n, d, m, tiles, tile_stride);
    }
  }

  template <int g>
  static void group_to_tile(const uint8_t* const (&spans)[kTileOutputs], const ScaleColumns& d,
                            const ScaleColumns& m, uint16_t* tile) {
    alignas(64) int8_t codes[kTileOutputs * kTileColumns];
    const auto row = [&](int i) {
      const __m256i of_row = Type::template codes<g>(spans[i]);
      return Type::kZero == 0 ? of_row : _mm256_sub_epi8(of_row, _mm256_set1_epi8(Type::kZero));
    };
    __m512i all_rows[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      all_rows[i] = _mm512_inserti64x4(_mm512_castsi256_si512(row(i)), row(i + 8), 1);
    }
    pair_columns(all_rows, codes);
    // From memory each half of 16 bytes costs one operation to widen, from the register two.
    asm volatile("" ::"r"(codes) : "memory");
    half_to_tile(codes, 0, d[g], m[g], tile);
    constexpr int kSecond = Type::kHalves ? kSpanGroups + g : g;
    half_to_tile(codes, 16, d[kSecond], m[kSecond], tile + kTileNumbers / 2);
  }

  [[gnu::always_inline]] static inline OutputPairs output_pairs(const float* numbers) {
    alignas(64) static constexpr int kLow[] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
    alignas(64) static constexpr int kHigh[] = {8,  8,  9,  9,  10, 10, 11, 11,
                                                12, 12, 13, 13, 14, 14, 15, 15};
    const __m512 all = _mm512_load_ps(numbers);
    return {_mm512_permutexvar_ps(_mm512_load_si512(kLow), all),
            _mm512_permutexvar_ps(_mm512_load_si512(kHigh), all)};
  }

  [[gnu::always_inline]] static inline void half_to_tile(const int8_t* codes, int at,
                                                         const float* d_numbers,
                                                         const float* m_numbers, uint16_t* tile) {
    const OutputPairs d = output_pairs(d_numbers);
    OutputPairs m = d;
    if constexpr (Type::kMinimums) m = output_pairs(m_numbers);
    for (int i = 0; i < 8; ++i) {
      const __m512 low = weights_of(codes + i * 64 + at, d.low, m.low);
      const __m512 high = weights_of(codes + i * 64 + at + 32, d.high, m.high);
      _mm512_store_si512(tile + i * kTileColumns, round_pairs(low, high));
    }
  }

  [[gnu::always_inline]] static inline __m512 weights_of(const int8_t* codes, __m512 d, __m512 m) {
    const __m128i sixteen = _mm_load_si128(reinterpret_cast<const __m128i*>(codes));
    const __m512 code = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sixteen));
    if constexpr (Type::kMinimums) return _mm512_fmadd_ps(code, d, m);
    return _mm512_mul_ps(code, d);
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
