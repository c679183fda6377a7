// Block scores on AVX2: sketches as pairs of 16-bit numbers, a key's pair in every lane.
#include "kernels/generic/blocks.inl.h"
#include "kernels/isa/simd_avx2.h"

namespace winnow {
namespace {

struct Sketches {
  static constexpr int kVecs = 2;

  static void pack(const float* coordinates, int32_t rank, std::byte* packed, int32_t* offsets) {
    for (int half = 0; half < kVecs; ++half) {
      __m256i sum = _mm256_setzero_si256();
      const float* from = coordinates + half * 8;
      for (int32_t i = 0; i < rank; i += 2) {
        const __m256i low = _mm256_cvtps_epi32(_mm256_loadu_ps(from + i * kScoreRows));
        const __m256i high = _mm256_cvtps_epi32(_mm256_loadu_ps(from + (i + 1) * kScoreRows));
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(low, high));
        const __m256i pair = _mm256_or_si256(_mm256_slli_epi32(high, 16),
                                             _mm256_and_si256(low, _mm256_set1_epi32(0xffff)));
        _mm256_storeu_si256(pairs_of(packed, i, half), pair);
      }
      // Keys stand 128 too high.
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(offsets + half * 8),
                          _mm256_slli_epi32(sum, 7));
    }
  }

  static void peaks(const ScoreState& state, int32_t rank, const uint8_t* keys, int32_t tokens,
                    __m256* out) {
    auto* wide = reinterpret_cast<int16_t*>(state.keys);
    for (int32_t i = 0; i < tokens * rank; i += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(keys + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(wide + i), _mm256_cvtepu8_epi16(bytes));
    }
    __m256i largest[kVecs] = {_mm256_set1_epi32(-0x7fffffff), _mm256_set1_epi32(-0x7fffffff)};
    for (int32_t token = 0; token < tokens; token += 2) {
      __m256i products[2][kVecs] = {{_mm256_setzero_si256(), _mm256_setzero_si256()},
                                    {_mm256_setzero_si256(), _mm256_setzero_si256()}};
      for (int32_t i = 0; i < rank; i += 2) {
        const __m256i q0 = _mm256_loadu_si256(pairs_of(state.sketches, i, 0));
        const __m256i q1 = _mm256_loadu_si256(pairs_of(state.sketches, i, 1));
#pragma GCC unroll 2
        for (int k = 0; k < 2; ++k) {
          const __m256i key = pair_of(wide + (token + k) * rank + i);
          products[k][0] = _mm256_add_epi32(products[k][0], _mm256_madd_epi16(q0, key));
          products[k][1] = _mm256_add_epi32(products[k][1], _mm256_madd_epi16(q1, key));
        }
      }
      for (int k = 0; k < 2; ++k) {
        for (int i = 0; i < kVecs; ++i) largest[i] = _mm256_max_epi32(largest[i], products[k][i]);
      }
    }
    for (int i = 0; i < kVecs; ++i) {
      const auto* offsets = reinterpret_cast<const __m256i*>(state.offsets + i * 8);
      out[i] = _mm256_cvtepi32_ps(_mm256_sub_epi32(largest[i], _mm256_loadu_si256(offsets)));
    }
  }

 private:
  static __m256i* pairs_of(std::byte* packed, int32_t i, int half) {
    return reinterpret_cast<__m256i*>(packed) + i + half;
  }
  static __m256i pair_of(const int16_t* key) {
    int32_t bits;
    __builtin_memcpy(&bits, key, sizeof(bits));
    return _mm256_set1_epi32(bits);
  }
};

constexpr BlockKernels kKernels = block_kernels_of<Avx2, Sketches>();

}  // namespace

const BlockKernels& block_kernels_avx2() { return kKernels; }

}  // namespace winnow
