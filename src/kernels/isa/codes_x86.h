// 32 weight codes side by side in one 256-bit register, and 8 float lanes: the vocabulary of
// generic/weight_codes.inl.h and generic/linear_generate.inl.h on x86.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/isa/load_bytes.h"

namespace winnow {
namespace {

using Codes32 = __m256i;
using Float8 = __m256;
using Int8 = __m256i;  // 8 lanes of int32

[[gnu::always_inline]] inline Codes32 codes_load(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
[[gnu::always_inline]] inline __m128i load_bytes16(const uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
// Low nibbles of 16 bytes, then their high nibbles.
[[gnu::always_inline]] inline Codes32 codes_nibbles(const uint8_t* p) {
  const __m256i twice = _mm256_broadcastsi128_si256(load_bytes16(p));
  const __m256i shifted = _mm256_srlv_epi32(twice, _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4));
  return _mm256_and_si256(shifted, _mm256_set1_epi8(15));
}
// (byte >> shift) & mask.
template <int kShift>
[[gnu::always_inline]] inline Codes32 codes_field(Codes32 bytes, int mask) {
  return _mm256_and_si256(_mm256_srli_epi16(bytes, kShift),
                          _mm256_set1_epi8(static_cast<char>(mask)));
}
// ((byte >> shift) & mask) << left; the field must stay inside its byte.
template <int kShift, int kLeft>
[[gnu::always_inline]] inline Codes32 codes_field_at(Codes32 bytes, int mask) {
  return _mm256_slli_epi16(codes_field<kShift>(bytes, mask), kLeft);
}
[[gnu::always_inline]] inline Codes32 codes_or(Codes32 a, Codes32 b) {
  return _mm256_or_si256(a, b);
}
// Bit i of the little-endian word at p, as `value` in byte i.
[[gnu::always_inline]] inline Codes32 codes_bits(const uint8_t* p, int value) {
  int32_t word;
  std::memcpy(&word, p, sizeof(word));
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                          2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32(word), spread);
  const __m256i bit = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201ULL));
  const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
  return _mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(value)));
}
// table[code] for codes below 16.
[[gnu::always_inline]] inline Codes32 codes_lookup(Codes32 codes, const int8_t* table) {
  const __m128i values = load_bytes16(reinterpret_cast<const uint8_t*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), codes);
}

// Puts the even columns of a group before the odd ones: bytes become 16-bit numbers of either kind
// by one shift or mask, where widening neighbours costs a move across the register's halves.
inline void split_even_odd(int16_t* group) {
  auto* at = reinterpret_cast<__m256i*>(group);
  const __m256i evens_first =
      _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15, 0, 1, 4, 5, 8, 9, 12,
                       13, 2, 3, 6, 7, 10, 11, 14, 15);
  // Four columns a unit: even 0-3, odd 0-3, even 4-7, odd 4-7.
  const __m256i first =
      _mm256_permute4x64_epi64(_mm256_shuffle_epi8(_mm256_loadu_si256(at), evens_first), 0xd8);
  const __m256i last =
      _mm256_permute4x64_epi64(_mm256_shuffle_epi8(_mm256_loadu_si256(at + 1), evens_first), 0xd8);
  _mm256_storeu_si256(at, _mm256_permute2x128_si256(first, last, 0x20));
  _mm256_storeu_si256(at + 1, _mm256_permute2x128_si256(first, last, 0x31));
}
constexpr bool kSplitsEvenOdd = true;

// A group's codes times the input's, which split_even_odd() has arranged. Lanes 0 to 3: the sums of
// columns 0 to 15, four each; lanes 4 to 7: of columns 16 to 31.
template <bool kSigned>
[[gnu::always_inline]] inline Int8 dot_group(Codes32 codes, const int16_t* input) {
  const __m256i even = kSigned ? _mm256_srai_epi16(_mm256_slli_epi16(codes, 8), 8)
                               : _mm256_and_si256(codes, _mm256_set1_epi16(0xff));
  const __m256i odd = kSigned ? _mm256_srai_epi16(codes, 8) : _mm256_srli_epi16(codes, 8);
  const auto* columns = reinterpret_cast<const __m256i*>(input);
  return _mm256_add_epi32(_mm256_madd_epi16(even, _mm256_loadu_si256(columns)),
                          _mm256_madd_epi16(odd, _mm256_loadu_si256(columns + 1)));
}
// The same columns of eight outputs: bytes become 16-bit numbers less kZero, and `panel` gets
// [16 steps][eight outputs][2 columns], steps step_stride numbers apart, with the columns in the
// order of split_even_odd().
template <bool kSigned, int kZero>
[[gnu::always_inline]] inline void store_eight_outputs(const Codes32 (&codes)[8], int16_t* panel,
                                                       int step_stride) {
  __m256i pairs[8], quads[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(codes[i], codes[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(codes[i], codes[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    quads[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
    quads[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    quads[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  const auto store = [&](int step, __m256i numbers) {
    if (kZero != 0) numbers = _mm256_sub_epi16(numbers, _mm256_set1_epi16(kZero));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(panel + step * step_stride), numbers);
  };
  // `bytes`: four columns of each output.
  const auto store_columns = [&](int step, __m256i bytes) {
    store(step, kSigned ? _mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8)
                        : _mm256_and_si256(bytes, _mm256_set1_epi16(0xff)));
    store(8 + step, kSigned ? _mm256_srai_epi16(bytes, 8) : _mm256_srli_epi16(bytes, 8));
  };
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    store_columns(i, _mm256_permute2x128_si256(quads[i], quads[4 + i], 0x20));
    store_columns(4 + i, _mm256_permute2x128_si256(quads[i], quads[4 + i], 0x31));
  }
}
// Sums of neighbours, in each half those of a before those of b. `vphaddd` takes twice the time.
[[gnu::always_inline]] inline Int8 add_neighbours(Int8 a, Int8 b) {
  const __m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
  return _mm256_add_epi32(_mm256_castps_si256(_mm256_shuffle_ps(x, y, 0x88)),
                          _mm256_castps_si256(_mm256_shuffle_ps(x, y, 0xdd)));
}
// Lanes 0 to 3: the sums of lanes 0 to 3 of a, b, c and d; lanes 4 to 7: of their lanes 4 to 7.
[[gnu::always_inline]] inline Int8 int8_join(Int8 a, Int8 b, Int8 c, Int8 d) {
  return add_neighbours(add_neighbours(a, b), add_neighbours(c, d));
}
// Lanes 0 to 3 of a, then of b.
[[gnu::always_inline]] inline Int8 int8_low_halves(Int8 a, Int8 b) {
  return _mm256_permute2x128_si256(a, b, 0x20);
}
[[gnu::always_inline]] inline Int8 int8_high_halves(Int8 a, Int8 b) {
  return _mm256_permute2x128_si256(a, b, 0x31);
}
[[gnu::always_inline]] inline Int8 int8_zero() { return _mm256_setzero_si256(); }
[[gnu::always_inline]] inline Int8 int8_add(Int8 a, Int8 b) { return _mm256_add_epi32(a, b); }
// a - factor * b.
[[gnu::always_inline]] inline Int8 int8_less(Int8 a, int factor, Int8 b) {
  return _mm256_sub_epi32(a, _mm256_mullo_epi32(b, _mm256_set1_epi32(factor)));
}
// Of whole numbers.
[[gnu::always_inline]] inline Int8 int8_from(__m256 v) { return _mm256_cvtps_epi32(v); }

[[gnu::always_inline]] inline Float8 float8_zero() { return _mm256_setzero_ps(); }
[[gnu::always_inline]] inline Float8 float8_set(float value) { return _mm256_set1_ps(value); }
[[gnu::always_inline]] inline Float8 float8_load(const float* p) { return _mm256_loadu_ps(p); }
[[gnu::always_inline]] inline void float8_store(float* p, Float8 v) { _mm256_storeu_ps(p, v); }
// The first n floats, zeros in the other lanes; reads no further.
[[gnu::always_inline]] inline Float8 float8_load_some(const float* p, int n) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane));
}
[[gnu::always_inline]] inline Float8 float8_add(Float8 a, Float8 b) { return _mm256_add_ps(a, b); }
[[gnu::always_inline]] inline Float8 float8_mul(Float8 a, Float8 b) { return _mm256_mul_ps(a, b); }
[[gnu::always_inline]] inline Float8 float8_fma(Float8 a, Float8 b, Float8 c) {
  return _mm256_fmadd_ps(a, b, c);
}
[[gnu::always_inline]] inline Float8 float8_from(Int8 v) { return _mm256_cvtepi32_ps(v); }
// Eight rows of eight floats, row_stride apart, become columns.
[[gnu::always_inline]] inline void float8_transpose(const float* rows, int row_stride, float* to,
                                                    int to_stride) {
  __m256 pairs[8], quads[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    const __m256 a = float8_load(rows + i * row_stride);
    const __m256 b = float8_load(rows + (i + 1) * row_stride);
    pairs[i] = _mm256_unpacklo_ps(a, b);
    pairs[i + 1] = _mm256_unpackhi_ps(a, b);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    float8_store(to + i * to_stride, _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x20));
    float8_store(to + (4 + i) * to_stride, _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x31));
  }
}
[[gnu::always_inline]] inline float float8_sum(Float8 v) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  sum = _mm_add_ss(sum, _mm_shuffle_ps(sum, sum, 1));
  return _mm_cvtss_f32(sum);
}
[[gnu::always_inline]] inline Float8 float8_from_unsigned_bytes(uint64_t bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
}
[[gnu::always_inline]] inline Float8 float8_from_signed_bytes(uint64_t bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
}

// Sixteen bytes, `low` first: those at even and those at odd places.
struct SplitBytes {
  uint64_t even, odd;
};
[[gnu::always_inline]] inline SplitBytes split_bytes(uint64_t low, uint64_t high) {
  const __m128i evens_first = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
  const __m128i split = _mm_shuffle_epi8(
      _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low)), evens_first);
  return {static_cast<uint64_t>(_mm_cvtsi128_si64(split)),
          static_cast<uint64_t>(_mm_extract_epi64(split, 1))};
}

[[gnu::always_inline]] inline float float_from_half(const uint8_t* p) {
  return _cvtsh_ss(load_u16(p));
}
[[gnu::always_inline]] inline Float8 float8_from_halves(const uint8_t* p) {
  return _mm256_cvtph_ps(load_bytes16(p));
}
[[gnu::always_inline]] inline Float8 float8_from_bfloats(const uint8_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_bytes16(p)), 16));
}
// Lane i of a load that starts 2 * i bytes early is half i: a blend takes the place of an
// insertion, which costs two operations.
[[gnu::always_inline]] inline __m128i gather_eight_halves(const uint8_t* p, int stride) {
  const int step = stride - 2;
  __m128i halves = load_bytes16(p);
  halves = _mm_blend_epi16(halves, load_bytes16(p + step), 1 << 1);
  halves = _mm_blend_epi16(halves, load_bytes16(p + 2 * step), 1 << 2);
  halves = _mm_blend_epi16(halves, load_bytes16(p + 3 * step), 1 << 3);
  halves = _mm_blend_epi16(halves, load_bytes16(p + 4 * step), 1 << 4);
  halves = _mm_blend_epi16(halves, load_bytes16(p + 5 * step), 1 << 5);
  halves = _mm_blend_epi16(halves, load_bytes16(p + 6 * step), 1 << 6);
  return _mm_blend_epi16(halves, load_bytes16(p + 7 * step), 1 << 7);
}
// n < 8 of them, zeros in the other lanes.
[[gnu::always_inline]] inline __m128i gather_some_halves(const uint8_t* p, int stride, int n) {
  __m128i halves = _mm_setzero_si128();
  if (n > 0) halves = _mm_insert_epi16(halves, load_u16(p), 0);
  if (n > 1) halves = _mm_insert_epi16(halves, load_u16(p + stride), 1);
  if (n > 2) halves = _mm_insert_epi16(halves, load_u16(p + 2 * stride), 2);
  if (n > 3) halves = _mm_insert_epi16(halves, load_u16(p + 3 * stride), 3);
  if (n > 4) halves = _mm_insert_epi16(halves, load_u16(p + 4 * stride), 4);
  if (n > 5) halves = _mm_insert_epi16(halves, load_u16(p + 5 * stride), 5);
  if (n > 6) halves = _mm_insert_epi16(halves, load_u16(p + 6 * stride), 6);
  return halves;
}
// Half floats at p, p + stride, ...: n of them, zeros in the other lanes. Reads n * stride bytes;
// with n = 8, stride must be at least 2.
[[gnu::always_inline]] inline Float8 float8_gather_halves(const uint8_t* p, int stride, int n) {
  return _mm256_cvtph_ps(n == 8 ? gather_eight_halves(p, stride)
                                : gather_some_halves(p, stride, n));
}

// One group of 32 inputs as int16 (linear_kernels.h).
struct InputGroup {
  float scale;
  int sum_low;   // of codes 0..15
  int sum_high;  // of codes 16..31
};
[[gnu::always_inline]] inline int sum_sixteen(__m256i codes) {
  const __m256i pairs = _mm256_madd_epi16(codes, _mm256_set1_epi16(1));
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}
inline InputGroup quantize_input_group(const float* x, int16_t* codes) {
  const __m256i magnitude_bits = _mm256_set1_epi32(0x7fffffff);
  __m256 v[4];
  __m256i most = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    // As integers the magnitudes order like the floats, with infinity and NaN on top.
    most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude_bits));
  }
  __m128i most4 = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
  most4 = _mm_max_epi32(most4, _mm_shuffle_epi32(most4, 0x4e));
  most4 = _mm_max_epi32(most4, _mm_shuffle_epi32(most4, 0xb1));
  const int most_bits = _mm_cvtsi128_si32(most4);
  __m256i* out = reinterpret_cast<__m256i*>(codes);
  constexpr int kInfinityBits = 0x7f800000, kSmallestBits = 0x0da24260;  // 1e-30f
  if (most_bits >= kInfinityBits || most_bits < kSmallestBits) {
    _mm256_storeu_si256(out, _mm256_setzero_si256());
    _mm256_storeu_si256(out + 1, _mm256_setzero_si256());
    return {most_bits >= kInfinityBits ? __builtin_nanf("") : 0.0f, 0, 0};
  }
  const float largest = _mm_cvtss_f32(_mm_castsi128_ps(most4));
  const __m256 inverse = _mm256_set1_ps(32767.0f / largest);
  __m256i q[4];
  for (int i = 0; i < 4; ++i)
    q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], inverse));  // nearest even
  const __m256i low = _mm256_permute4x64_epi64(_mm256_packs_epi32(q[0], q[1]), 0xd8);
  const __m256i high = _mm256_permute4x64_epi64(_mm256_packs_epi32(q[2], q[3]), 0xd8);
  _mm256_storeu_si256(out, low);
  _mm256_storeu_si256(out + 1, high);
  return {largest / 32767.0f, sum_sixteen(low), sum_sixteen(high)};
}

}  // namespace
}  // namespace winnow
