// Block scores on AVX-512 with VNNI: a key's sketch stands as the unsigned operand, four numbers of
// it in every lane, so that 16 rows take one instruction per four numbers.
#include "kernels/generic/blocks.inl.h"
#include "kernels/isa/simd_avx512.h"

namespace winnow {
namespace {

struct Sketches {
  static void pack(const float* coordinates, int32_t rank, std::byte* packed, int32_t* offsets) {
    const __m512i byte = _mm512_set1_epi32(255);
    __m512i sum = _mm512_setzero_si512();
    for (int32_t i = 0; i < rank; i += 4) {
      __m512i four = _mm512_setzero_si512();
      for (int k = 3; k >= 0; --k) {
        const __m512i number =
            _mm512_cvtps_epi32(_mm512_loadu_ps(coordinates + (i + k) * kScoreRows));
        sum = _mm512_add_epi32(sum, number);
        four = _mm512_or_si512(_mm512_slli_epi32(four, 8), _mm512_and_si512(number, byte));
      }
      _mm512_storeu_si512(packed + i * kScoreRows, four);
    }
    // Keys stand 128 too high.
    _mm512_storeu_si512(offsets, _mm512_slli_epi32(sum, 7));
  }

  static void peaks(const ScoreState& state, int32_t rank, const uint8_t* keys, int32_t tokens,
                    __m512* out) {
    __m512i largest = _mm512_set1_epi32(-0x7fffffff);
    for (int32_t token = 0; token < tokens; token += 4) {
      __m512i products[4];
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) products[k] = _mm512_setzero_si512();
      for (int32_t i = 0; i < rank; i += 4) {
        const __m512i q = _mm512_loadu_si512(state.sketches + i * kScoreRows);
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) {
          products[k] = _mm512_dpbusd_epi32(products[k], four_of(keys + (token + k) * rank + i), q);
        }
      }
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) largest = _mm512_max_epi32(largest, products[k]);
    }
    out[0] = _mm512_cvtepi32_ps(_mm512_sub_epi32(largest, _mm512_loadu_si512(state.offsets)));
  }

 private:
  static __m512i four_of(const uint8_t* key) {
    int32_t bits;
    __builtin_memcpy(&bits, key, sizeof(bits));
    return _mm512_set1_epi32(bits);
  }
};

constexpr BlockKernels kKernels = block_kernels_of<Avx512, Sketches>();

}  // namespace

const BlockKernels& block_kernels_avx512() { return kKernels; }

}  // namespace winnow
